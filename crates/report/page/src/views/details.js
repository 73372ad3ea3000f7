/**
 * What is known about the selected slice, beside the stage.
 */

import { FLAG, KIND } from "../data/slices.js";
import { kindName } from "../data/run.js";
import { link } from "../route.js";
import { fill, h } from "../ui/dom.js";
import { count, percent } from "../ui/format.js";
import { addressLink, interruptedLink, sourceLink, swatch } from "./links.js";

/** Callers that are listed. */
const CALLERS = 40;
/** Instructions that a live page shows. */
const INSTRUCTIONS = 12;
/** Milliseconds that a slice is selected before its instructions are asked for. */
const WALKING = 120;

const FLAG_TEXTS = /** @type {[number, string][]} */ ([
  [FLAG.startNotSeen, "its start was not seen"],
  [FLAG.endNotSeen, "its end was not seen"],
  [FLAG.doubtful, "doubtful: it contradicts the calls before it"],
  [FLAG.inferred, "inferred from a return, not seen as a call"],
  [FLAG.unwound, "ended by unwinding, not by a return"],
]);

/**
 * One sentence, for the tooltip and for screen readers.
 * @param {import("../stage/lane.js").Lane} lane @param {import("../data/axis.js").Axis} axis
 * @param {import("../stage/stage.js").Selection} selection
 */
export function describe(lane, axis, selection) {
  const name = lane.run.label(selection.function);
  const merged =
    selection.kind === KIND.summary ? " and other short calls, " + count(selection.merged) + " in all" : "";
  const kind =
    selection.kind === KIND.call || selection.kind === KIND.summary ? "" : ", " + kindName(selection.kind);
  return name + merged + kind + ", " + axis.span(selection.end - selection.begin);
}

export class Details {
  /** @param {import("../shell.js").Context} context */
  constructor(context) {
    this.context = context;
    this.element = h("aside", { class: "details", "aria-label": "Selected slice" });
    this.clear();
  }

  clear() {
    fill(
      this.element,
      h(
        "p",
        { class: "soft" },
        "Select a slice to see what it is. Click it, or press Enter on the chart and walk with the arrow keys.",
      ),
    );
  }

  /** @param {import("../stage/stage.js").Stage} stage */
  show(stage) {
    const { selection } = stage;
    if (!selection) return this.clear();
    const lane = stage.lanes[selection.lane];
    const { run } = lane;
    const name = run.label(selection.function);
    const instructions = h("div", null);
    fill(
      this.element,
      h("h2", null, swatch(name), name),
      h("p", { class: "soft" }, kindName(selection.kind) + (lane.title ? ", " + lane.title : "")),
      facts(stage, selection),
      event(lane, selection, stage.index(selection.lane)),
      flags(selection.flags),
      links(run, selection),
      callers(stage, selection),
      instructions,
    );
    if (lane.track !== null) this.showInstructions(run, lane.track, selection, instructions);
  }

  /**
   * @param {import("../data/run.js").Run} run @param {number} track
   * @param {import("../stage/stage.js").Selection} selection @param {HTMLElement} parent
   */
  async showInstructions(run, track, selection, parent) {
    const { backend } = this.context;
    // Who walks from slice to slice does not wait for what is not looked at.
    if (backend.live) await new Promise((resolve) => setTimeout(resolve, WALKING));
    if (!parent.isConnected) return;
    const rows = await backend.instructions(run, track, selection.at, INSTRUCTIONS);
    if (!rows || !parent.isConnected) return;
    const from =
      selection.at === selection.begin
        ? "its start"
        : run.axis.isTime
          ? "time " + run.axis.position(selection.at)
          : run.axis.position(selection.at);
    fill(
      parent,
      h("h3", null, "Instructions from " + from),
      rows.lack && h("p", { class: "soft" }, rows.lack),
      h(
        "ol",
        { class: "instructions mono" },
        rows.text
          .slice(0, INSTRUCTIONS)
          .map((/** @type {string} */ text, /** @type {number} */ row) =>
            h(
              "li",
              null,
              rows.function[row] >= 0
                ? h(
                    "a",
                    { href: link("code", run.number, [rows.function[row]], { address: rows.address[row] }) },
                    rows.address[row],
                  )
                : rows.address[row],
              " ",
              text,
              " ",
              h("span", { class: "soft" }, rows.note[row]),
            ),
          ),
      ),
    );
  }
}

/**
 * @param {import("../stage/stage.js").Stage} stage @param {import("../stage/stage.js").Selection} selection
 */
function facts(stage, selection) {
  const { axis } = stage;
  const index = stage.index(selection.lane);
  const slice = index.find(selection);
  const length = selection.end - selection.begin;
  const rows = [
    ["Begin", axis.position(selection.begin)],
    ["Duration", axis.span(length)],
    slice >= 0 && ["Own part", axis.span(index.own(slice)) + " (" + percent(index.own(slice), length) + ")"],
    ["Share of all", percent(length, axis.until - axis.from)],
    ["Depth", count(selection.depth)],
    selection.merged > 1 && ["Merged calls", count(selection.merged)],
  ];
  return pairs(rows);
}

/**
 * What caused a trap or a gap.
 * @param {import("../stage/lane.js").Lane} lane @param {import("../stage/stage.js").Selection} selection
 * @param {import("../data/slices.js").SliceIndex} index
 */
function event({ run, track }, selection, index) {
  if (track === null) return null;
  const slice = index.find(selection);
  if (selection.kind === KIND.trap && slice >= 0) return trapFacts(run, run.trapOfSlice(track, index, slice));
  return selection.kind === KIND.gap ? gapFacts(run, run.gapAt(track, selection.begin)) : null;
}

/** @param {import("../data/run.js").Run} run @param {number} trap */
function trapFacts(run, trap) {
  if (trap < 0) return null;
  const { traps } = run.data;
  return pairs([
    ["Cause", run.trapName(trap)],
    traps.epc[trap] && ["Interrupted at", addressLink(run, run.functionAt(traps.epc[trap]), traps.epc[trap])],
    ["Interrupted", interruptedLink(run, trap)],
    traps.tval?.[trap] && ["Trap value", h("span", { class: "mono" }, traps.tval[trap])],
  ]);
}

/** @param {import("../data/run.js").Run} run @param {number} gap */
function gapFacts(run, gap) {
  if (gap < 0) return null;
  const { gaps } = run.data;
  return pairs([
    ["Reason", run.string(gaps.reason[gap])],
    gaps.code[gap] && ["Code", h("code", null, gaps.code[gap])],
    ["Bytes skipped", count(gaps.bytes[gap])],
  ]);
}

/** @param {any[]} rows name and value; others are left out */
function pairs(rows) {
  return h(
    "dl",
    { class: "pairs" },
    rows.filter(Boolean).map((row) => [h("dt", null, row[0]), h("dd", null, row[1])]),
  );
}

/** @param {number} value */
function flags(value) {
  const texts = FLAG_TEXTS.filter(([bit]) => value & bit).map(([, text]) => text);
  return texts.length > 0
    ? h(
        "ul",
        { class: "flags" },
        texts.map((text) => h("li", null, text)),
      )
    : null;
}

/** @param {import("../data/run.js").Run} run @param {import("../stage/stage.js").Selection} selection */
function links(run, selection) {
  const number = selection.function;
  if (number < 0) return null;
  const { functions } = run;
  return h(
    "p",
    { class: "links" },
    h("a", { href: link("code", run.number, [number]) }, "Code"),
    functions.file[number] >= 0
      ? h(
          "a",
          { href: link("source", run.number, [functions.file[number]], { line: functions.line[number] }) },
          "Source",
        )
      : null,
    h("a", { href: link("flame", run.number, [], { search: run.functionName(number) }) }, "Flame graph"),
    h("a", { href: link("timeline", run.number, [], { search: run.functionName(number) }) }, "All calls"),
    h("span", { class: "soft" }, sourceLink(run, functions.file[number], functions.line[number])),
  );
}

/**
 * The chain of callers; each can be selected.
 * @param {import("../stage/stage.js").Stage} stage @param {import("../stage/stage.js").Selection} selection
 */
function callers(stage, selection) {
  const index = stage.index(selection.lane);
  const slice = index.find(selection);
  const chain = slice >= 0 ? index.ancestors(slice) : [];
  if (chain.length === 0) return null;
  const { run } = stage.lanes[selection.lane];
  const shown = chain.slice(0, CALLERS);
  return [
    h("h3", null, selection.kind === KIND.trap ? "Interrupted calls" : "Called by"),
    h(
      "ol",
      { class: "callers" },
      shown.map((caller) => {
        const name = run.label(index.function[caller]);
        const chosen = stage.selectionOf(selection.lane, caller);
        return h(
          "li",
          null,
          h(
            "button",
            { type: "button", class: "plain", title: name, on: { click: () => stage.select(chosen, true) } },
            swatch(name),
            name,
          ),
        );
      }),
      chain.length > shown.length &&
        h("li", { class: "soft" }, "and " + count(chain.length - shown.length) + " more"),
    ),
  ];
}
