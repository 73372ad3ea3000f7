/**
 * Two runs beside each other: totals, functions by change, and both timelines.
 */

import { Axis } from "../data/axis.js";
import { matcher } from "../data/search.js";
import { link } from "../route.js";
import { Stage } from "../stage/stage.js";
import { h } from "../ui/dom.js";
import { bytes, count, percent, plural, signed } from "../ui/format.js";
import { Table, filterField } from "../ui/table.js";
import { Details, describe } from "./details.js";
import { Finder } from "./finder.js";
import { keysHelp, legend, trackChooser, zoomButtons } from "./controls.js";
import { heading, swatch } from "./links.js";
import { lanesOf } from "./timeline.js";
import { visibleTable } from "./visible.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {import("../shell.js").Context} context */
export function compareView(context) {
  const [before, after] = context.report.runs;
  const compare = context.report.compare;
  const timelines = twoTimelines(context, before, after);
  const element = h(
    "div",
    { class: "view compare" },
    heading("Compare", [
      h("strong", null, "Before"),
      ": " + before.name + ". ",
      h("strong", null, "After"),
      ": " + after.name + ".",
    ]),
    compare?.first_difference ? firstDifference(compare.first_difference) : null,
    h("section", null, h("h2", null, "Totals"), totals(before, after)),
    h(
      "section",
      { class: "functions-compared" },
      h("h2", null, "Functions"),
      functionsCompared(before, after, compare?.functions),
    ),
    h("section", null, h("h2", null, "Timelines"), timelines.element),
  );
  return { element, shown: timelines.shown, close: timelines.close, search: timelines.search };
}

/** @param {string} difference */
function firstDifference(difference) {
  return h("p", { class: "note" }, h("strong", null, "First difference: "), difference);
}

/** @param {Run} before @param {Run} after */
function totals(before, after) {
  const rows = /** @type {[string, number, number, (value: number) => string][]} */ ([
    ["Instructions", before.data.instructions, after.data.instructions, count],
    ...(before.axis.isTime && after.axis.isTime
      ? [
          [
            "Time",
            lengthOf(before),
            lengthOf(after),
            (/** @type {number} */ value) => before.axis.span(value),
          ],
        ]
      : []),
    ["Bytes of trace", before.data.bytes, after.data.bytes, bytes],
    ["Traps", before.data.traps.at.length, after.data.traps.at.length, count],
    ["Gaps", before.data.gaps.at.length, after.data.gaps.at.length, count],
    ["Functions executed", executed(before), executed(after), count],
  ]);
  const body = rows.map(([name, old, now, text]) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, name),
      h("td", { class: "number" }, text(old)),
      h("td", { class: "number" }, text(now)),
      h("td", { class: "number" }, signed(now - old)),
      h("td", { class: "number" }, relative(old, now)),
    ),
  );
  return h(
    "table",
    { class: "plain totals" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["", "Before", "After", "Change", "Relative"].map((label, place) =>
          h("th", { scope: "col", class: place ? "number" : null }, label),
        ),
      ),
    ),
    h("tbody", null, body),
  );
}

/** @param {Run} run */
function lengthOf(run) {
  return run.axis.until - run.axis.from;
}

/** @param {Run} run */
function executed(run) {
  return run.functions.self.filter((/** @type {number} */ value) => value > 0).length;
}

/** @param {number} old @param {number} now */
export function relative(old, now) {
  if (old === now) return "=";
  if (old === 0) return "new";
  if (now === 0) return "gone";
  return (now > old ? "\u25b2 +" : "\u25bc \u2212") + percent(Math.abs(now - old), old);
}

/**
 * Functions of both runs, by name.
 * @param {Run} before @param {Run} after @param {{name: string, before: number, after: number}[]|undefined} given
 */
export function comparedFunctions(before, after, given) {
  if (given) return given;
  const rows = new Map();
  for (const [run, key] of /** @type {[Run, "before"|"after"][]} */ ([
    [before, "before"],
    [after, "after"],
  ])) {
    for (let number = 0; number < run.functionCount; number++) {
      const name = run.functionName(number);
      if (!rows.has(name)) rows.set(name, { name, before: 0, after: 0 });
      rows.get(name)[key] += run.functions.self[number];
    }
  }
  return [...rows.values()].filter((row) => row.before + row.after > 0);
}

/** @param {Run} before @param {Run} after @param {any} given */
function functionsCompared(before, after, given) {
  const rows = comparedFunctions(before, after, given);
  const change = (/** @type {number} */ row) => rows[row].after - rows[row].before;
  const most = Math.max(1, ...rows.map((row) => Math.abs(row.after - row.before)));
  const table = new Table({
    caption: "Functions before and after, own instructions",
    length: rows.length,
    sort: "size",
    descending: true,
    empty: "No function matches.",
    columns: [
      {
        key: "name",
        label: "Function",
        header: true,
        class: "wide",
        value: (row) => rows[row].name,
        cell: (row) => comparedLink(before, after, rows[row].name),
      },
      {
        key: "before",
        label: "Before",
        numeric: true,
        value: (row) => rows[row].before,
        cell: (row) => count(rows[row].before),
      },
      {
        key: "after",
        label: "After",
        numeric: true,
        value: (row) => rows[row].after,
        cell: (row) => count(rows[row].after),
      },
      { key: "change", label: "Change", numeric: true, value: change, cell: (row) => signed(change(row)) },
      {
        key: "size",
        label: "Size of change",
        numeric: true,
        value: (row) => Math.abs(change(row)),
        cell: (row) => changeBar(change(row) / most),
      },
      {
        key: "relative",
        label: "Relative",
        numeric: true,
        value: (row) => (rows[row].before > 0 ? change(row) / rows[row].before : Infinity),
        cell: (row) => relative(rows[row].before, rows[row].after),
      },
    ],
  });
  const status = h("span", { class: "search-status", role: "status" }, plural(rows.length, "function"));
  const changed = h("input", { type: "checkbox", on: { change: () => apply() } });
  const field = filterField("Filter functions", () => apply());
  const apply = () => {
    const matches = field.value.trim() ? matcher(field.value) : () => true;
    table.show((row) => (!changed.checked || change(row) !== 0) && matches(rows[row].name));
    status.textContent = plural(table.rows.length, "function");
  };
  return [
    h("div", { class: "toolbar" }, field, h("label", null, changed, " only changed"), status),
    table.element,
  ];
}

/** More to the right, less to the left. @param {number} share -1 to 1 */
function changeBar(share) {
  const size = (50 * Math.min(1, Math.abs(share))).toFixed(2) + "%";
  return h(
    "span",
    { class: "change", "aria-hidden": "true" },
    h("span", { class: share > 0 ? "more" : "less", style: { width: size } }),
  );
}

/** @param {Run} before @param {Run} after @param {string} name */
function comparedLink(before, after, name) {
  const run = after.functionNamed(name) >= 0 ? after : before;
  const number = run.functionNamed(name);
  if (number < 0) return h("span", null, swatch(name), name);
  return h("a", { class: "name", href: link("code", run.number, [number]), title: name }, swatch(name), name);
}

/** @param {import("../shell.js").Context} context @param {Run} before @param {Run} after */
function twoTimelines(context, before, after) {
  const axis = new Axis({
    unit: before.data.axis.unit,
    from: Math.min(before.axis.from, after.axis.from),
    until: Math.max(before.axis.until, after.axis.until),
    ticks_per_second: before.data.axis.ticks_per_second,
  });
  const details = new Details(context);
  const sameUnit = before.axis.unit === after.axis.unit;
  const stage = new Stage({
    lanes: [...lanesOf(context, before, "Before: "), ...lanesOf(context, after, "After: ")],
    axis,
    theme: context.theme,
    label: "Timelines of both runs. Press Enter to select a slice, arrows to walk.",
    describe: (selection) => describe(stage.lanes[selection.lane], axis, selection),
    onSelect: (selection) => {
      details.show(stage);
      if (selection)
        context.announcer.say(
          stage.lanes[selection.lane].title + ", " + describe(stage.lanes[selection.lane], axis, selection),
        );
    },
    onData: () => details.show(stage),
    onWindow: () => table.update(),
  });
  const table = visibleTable(stage);
  const finder = new Finder(context, stage, () => {});
  const element = h(
    "div",
    { class: "two-timelines" },
    !sameUnit &&
      h(
        "p",
        { class: "note" },
        "The timelines have different units: " + before.axis.unit + " before, " + after.axis.unit + " after.",
      ),
    h(
      "div",
      { class: "toolbar" },
      finder.bar.element,
      zoomButtons(stage),
      h("span", { class: "spring" }),
      trackChooser(stage),
      legend(),
      keysHelp(),
    ),
    h("div", { class: "with-details" }, stage.element, details.element),
    table.element,
  );
  return { element, shown: () => stage.resize(), close: () => stage.close(), search: finder.bar.input };
}
