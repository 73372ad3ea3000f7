/**
 * The flame graph: merged, where all calls with the same callers are one box, and in
 * the order of time, where it is one track of the timeline. A click zooms.
 */

import { fixedTrack } from "../data/backend.js";
import { flameAxis, layoutFlame } from "../data/flame.js";
import { SliceIndex } from "../data/slices.js";
import { link, replaceRoute } from "../route.js";
import { Lane } from "../stage/lane.js";
import { Stage } from "../stage/stage.js";
import { fill, h } from "../ui/dom.js";
import { count, percent } from "../ui/format.js";
import { keysHelp, zoomButtons } from "./controls.js";
import { Details, describe } from "./details.js";
import { Finder } from "./finder.js";
import { heading } from "./links.js";
import { visibleTable } from "./visible.js";

/** @typedef {import("../data/run.js").Run} Run */
/** @typedef {{order: string, by: string, track: number}} Choice */

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {import("../route.js").Route} route
 */
export function flameView(context, run, route) {
  const hasTime = Boolean(run.data.flame.self_time);
  /** @type {Choice} */
  const choice = {
    order: route.query.order === "time" ? "time" : "merged",
    by: hasTime && route.query.by === "time" ? "time" : "instructions",
    track: Number.parseInt(route.query.track, 10) || 0,
  };
  const holder = h("div", { class: "holder" });
  /** @type {{stage: Stage, finder: Finder}|null} */
  let current = null;
  const show = (/** @type {string} */ search) => {
    current?.stage.close();
    current = build(context, run, choice, choices.element, holder);
    replaceRoute(
      link("flame", run.number, [], {
        order: choice.order,
        by: hasTime ? choice.by : null,
        track: choice.order === "time" ? choice.track : null,
        search,
      }),
    );
    current.stage.resize();
    if (search) current.finder.bar.set(search);
  };
  const change = (/** @type {Partial<Choice>} */ part) => {
    Object.assign(choice, part);
    choices.draw();
    show(current ? current.finder.bar.query : "");
  };
  const choices = choiceFields(run, choice, hasTime, change);
  const view = {
    element: h("div", { class: "view filling" }, heading("Flame graph"), holder),
    shown: () => show(route.query.search ?? ""),
    close: () => current?.stage.close(),
    get search() {
      return current?.finder.bar.input;
    },
  };
  return view;
}

/**
 * @param {Run} run @param {Choice} choice @param {boolean} hasTime
 * @param {(part: Partial<Choice>) => void} change
 */
function choiceFields(run, choice, hasTime, change) {
  const element = h("div", { class: "choices-row" });
  const radios = (
    /** @type {string} */ legendText,
    /** @type {"order"|"by"} */ key,
    /** @type {[string, string][]} */ values,
  ) =>
    h(
      "fieldset",
      { class: "choices" },
      h("legend", { class: "visually-hidden" }, legendText),
      values.map(([value, label]) =>
        h(
          "label",
          null,
          h("input", {
            type: "radio",
            name: "flame-" + key,
            value,
            checked: choice[key] === value,
            on: { change: () => change({ [key]: value }) },
          }),
          " " + label,
        ),
      ),
    );
  const draw = () => {
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    const name = focused?.getAttribute("name");
    fill(
      element,
      radios("Order", "order", [
        ["merged", "Merged"],
        ["time", "In the order of time"],
      ]),
      choice.order === "merged" && hasTime
        ? radios("Width", "by", [
            ["instructions", "By instructions"],
            ["time", "By time"],
          ])
        : null,
      choice.order === "time" && run.tracks.length > 1
        ? h(
            "label",
            null,
            "Track ",
            h(
              "select",
              {
                name: "flame-track",
                on: { change: (/** @type {any} */ event) => change({ track: Number(event.target.value) }) },
              },
              run.tracks.map((/** @type {any} */ track) =>
                h("option", { value: track.id, selected: track.id === choice.track }, track.name),
              ),
            ),
          )
        : null,
    );
    // The fields were replaced: the keyboard stays where it was.
    if (name) element.querySelector(`[name="${name}"]:checked, select[name="${name}"]`)?.focus();
  };
  draw();
  return { element, draw };
}

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {Choice} choice
 * @param {HTMLElement} choices @param {HTMLElement} holder
 */
function build(context, run, choice, choices, holder) {
  const { lane, axis, calls } =
    choice.order === "merged" ? mergedLane(run, choice.by === "time") : timeLane(context, run, choice.track);
  const details = new Details(context);
  const say = (/** @type {import("../stage/stage.js").Selection} */ selection) =>
    describe(lane, axis, selection) +
    ", " +
    percent(selection.end - selection.begin, axis.until - axis.from) +
    calls(selection);
  const stage = new Stage({
    lanes: [lane],
    axis,
    theme: context.theme,
    minimum: Math.max(1, (axis.until - axis.from) / 1e6),
    minimap: choice.order === "time",
    clickZooms: true,
    label:
      "Flame graph of " +
      run.name +
      ". Press Enter to select a box, arrows to walk, Enter to zoom, 0 to show all.",
    describe: say,
    onSelect: (selection) => {
      details.show(stage);
      if (selection) context.announcer.say(say(selection));
    },
    onData: () => details.show(stage),
    onWindow: () => table.update(),
  });
  const table = visibleTable(stage);
  const finder = new Finder(context, stage, () => share());
  const matched = h("span", { class: "window" });
  const share = () => {
    matched.textContent =
      finder.bar.query.trim() && choice.order === "merged"
        ? percent(covered(stage, finder), axis.until - axis.from) + " of all"
        : "";
  };
  fill(
    holder,
    h(
      "div",
      { class: "toolbar" },
      finder.bar.element,
      zoomButtons(stage),
      choices,
      matched,
      h("span", { class: "spring" }),
      keysHelp(),
    ),
    h("div", { class: "with-details" }, stage.element, details.element),
    table.element,
  );
  return { stage, finder };
}

/**
 * How much of the axis the hits cover; one inside another counts once.
 * @param {Stage} stage @param {Finder} finder
 */
function covered(stage, finder) {
  let sum = 0;
  let reach = -Infinity;
  const index = stage.index(0);
  for (const hit of finder.hits) {
    const end = index.end[hit.slice];
    if (end <= reach) continue;
    sum += end - Math.max(reach, index.begin[hit.slice]);
    reach = end;
  }
  return sum;
}

/** @param {Run} run @param {boolean} byTime */
function mergedLane(run, byTime) {
  const { flame } = run.data;
  const { index, nodes, whole } = layoutFlame(flame, byTime);
  const data = fixedTrack(index);
  const calls = (/** @type {import("../stage/stage.js").Selection} */ selection) => {
    const slice = index.find(selection);
    const number = slice >= 0 ? flame.calls[nodes[slice]] : 0;
    return number > 0 ? ", calls: " + count(number) : "";
  };
  return {
    lane: new Lane(run, "All calls, " + (byTime ? "by time" : "by instructions"), data, null),
    axis: flameAxis(run.axis, byTime, whole),
    calls,
  };
}

/** @param {import("../shell.js").Context} context @param {Run} run @param {number} id of the track */
function timeLane(context, run, id) {
  const track = run.tracks.find((/** @type {any} */ one) => one.id === id) ?? run.tracks[0];
  const data = track ? context.backend.track(run, track) : fixedTrack(new SliceIndex(null));
  return {
    lane: new Lane(run, track ? track.name : "", data, track ? track.id : null),
    axis: run.axis,
    calls: () => "",
  };
}
