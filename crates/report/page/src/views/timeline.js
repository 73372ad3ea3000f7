/**
 * The timeline: a lane per track with its nested calls, traps and gaps.
 */

import { KIND } from "../data/slices.js";
import { link, replaceRoute } from "../route.js";
import { Lane } from "../stage/lane.js";
import { Stage } from "../stage/stage.js";
import { h, settle } from "../ui/dom.js";
import { keysHelp, legend, trackChooser, windowText, zoomButtons } from "./controls.js";
import { Details, describe } from "./details.js";
import { Finder } from "./finder.js";
import { heading } from "./links.js";
import { visibleTable } from "./visible.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {import("../shell.js").Context} context @param {Run} run */
export function lanesOf(context, run, prefix = "") {
  return run.tracks.map(
    (/** @type {any} */ track) =>
      new Lane(run, prefix + track.name, context.backend.track(run, track), track.id),
  );
}

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {import("../route.js").Route} route
 */
export function timelineView(context, run, route) {
  const details = new Details(context);
  const shown = h("span", { class: "window" });
  const lack = h("p", { class: "soft lack", role: "status" });
  const stage = new Stage({
    lanes: lanesOf(context, run),
    axis: run.axis,
    theme: context.theme,
    label:
      "Timeline of " +
      run.name +
      ", in " +
      run.axis.unit +
      ". Press Enter to select a slice, arrows to walk, W and S to zoom, A and D to pan.",
    describe: (selection) => describe(stage.lanes[selection.lane], stage.axis, selection),
    onSelect: (selection) => {
      wanted = null;
      details.show(stage);
      if (selection)
        context.announcer.say(
          describe(stage.lanes[selection.lane], stage.axis, selection) + ", depth " + selection.depth,
        );
      remember();
    },
    onData: () => {
      lack.textContent = stage.lanes.find((lane) => lane.data.lack)?.data.lack ?? "";
      details.show(stage);
    },
    onWindow: () => {
      shown.textContent = windowText(stage);
      table.update();
      remember();
      // Selecting moves the window again: it is asked for once only.
      const query = wanted;
      wanted = null;
      if (query && !selectAt(stage, query)) wanted = query;
    },
  });
  /** A slice to select when it has come from the server. @type {Record<string, string>|null} */
  let wanted = null;
  const table = visibleTable(stage);
  const finder = new Finder(context, stage, () => remember());
  const remember = settle(250, () => {
    if (element.isConnected) replaceRoute(routeOf(run, stage, finder.bar.query));
  });
  const element = h(
    "div",
    { class: "view filling timeline" },
    heading("Timeline"),
    h(
      "div",
      { class: "toolbar" },
      finder.bar.element,
      zoomButtons(stage),
      shown,
      h("span", { class: "spring" }),
      trackChooser(stage),
      legend(),
      keysHelp(),
    ),
    lack,
    run.tracks.length === 0
      ? h("p", null, "The trace has no track.")
      : h("div", { class: "with-details" }, stage.element, details.element),
    table.element,
  );
  const update = (/** @type {import("../route.js").Route} */ next) => {
    const from = Number.parseFloat(next.query.from);
    const until = Number.parseFloat(next.query.until);
    if (from < until) stage.show(from, until);
    wanted = selectAt(stage, next.query) ? null : next.query;
    if (next.query.search !== undefined && next.query.search !== finder.bar.query)
      finder.bar.set(next.query.search);
  };
  return {
    element,
    update,
    shown: () => {
      stage.resize();
      update(route);
      shown.textContent = windowText(stage);
      if (route.query.search && !stage.selection) finder.step(1);
    },
    close: () => stage.close(),
    search: finder.bar.input,
  };
}

/** @param {Run} run @param {Stage} stage @param {string} search */
function routeOf(run, stage, search) {
  const { view, selection } = stage;
  return link("timeline", run.number, [], {
    from: view.isWhole ? null : Math.floor(view.from),
    until: view.isWhole ? null : Math.ceil(view.until),
    track: selection ? stage.lanes[selection.lane].track : null,
    at: selection ? selection.at : null,
    depth: selection ? selection.depth : null,
    search,
  });
}

/**
 * Selects the slice that an address names.
 * @param {Stage} stage @param {Record<string, string>} query @returns {boolean} nothing is left to do
 */
function selectAt(stage, query) {
  const lane = stage.lanes.findIndex((one) => String(one.track) === query.track);
  const at = Number.parseFloat(query.at);
  if (lane < 0 || !Number.isFinite(at)) return true;
  const trap = Number.parseInt(query.trap, 10);
  const { run } = stage.lanes[lane];
  const known = trap >= 0 && trap < run.data.traps.at.length ? run.sliceOfTrap(stage.index(lane), trap) : -1;
  const slice = known >= 0 ? known : sliceAt(stage.index(lane), at, Number.parseInt(query.depth, 10));
  if (slice >= 0) stage.select(stage.selectionOf(lane, slice, at), true);
  // A server may still send calls inside this one.
  return stage.lanes[lane].data.isSettled(stage.view.from, stage.view.until, stage.width);
}

/**
 * The slice of a depth at a position; without a depth the trap that begins there, or
 * the innermost call.
 * @param {import("../data/slices.js").SliceIndex} index @param {number} at @param {number} depth NaN: any
 */
function sliceAt(index, at, depth) {
  if (depth >= 0) return index.at(depth, at);
  let innermost = -1;
  for (let one = 0; one < index.depths; one++) {
    const slice = index.at(one, at);
    if (slice < 0) continue;
    if (index.begin[slice] === at && index.kind[slice] === KIND.trap) return slice;
    innermost = slice;
  }
  return innermost;
}
