/**
 * How it ended: the last instructions of each track, and what ran before exceptions.
 */

import { link } from "../route.js";
import { h } from "../ui/dom.js";
import { count, plural } from "../ui/format.js";
import { Table } from "../ui/table.js";
import { addressLink, functionLink, heading, sourceLink, timelineLink, trapLink } from "./links.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {import("../shell.js").Context} context @param {Run} run */
export function endingsView(context, run) {
  const element = h(
    "div",
    { class: "view" },
    heading(
      "How it ended",
      "The last instructions of each track, the oldest first, and those before exceptions.",
    ),
    endingsParts(run),
  );
  // The end is what the view is about.
  const shown = () =>
    element
      .querySelectorAll(".table")
      .forEach((/** @type {HTMLElement} */ table) => (table.scrollTop = table.scrollHeight));
  return { element, shown };
}

/** What is also printed. @param {Run} run @param {number} [limit] of instructions */
export function endingsParts(run, limit = Infinity) {
  const { endings, before_traps } = run.data;
  return [
    endings.map((/** @type {any} */ ending) =>
      h(
        "section",
        null,
        h("h2", null, run.trackName(ending.track)),
        h("p", null, endingText(run, ending)),
        instructionsTable(
          run,
          ending.track,
          ending.rows,
          "Last instructions of " + run.trackName(ending.track),
          limit,
        ).element,
      ),
    ),
    before_traps.length > 0 && h("h2", null, "Before exceptions"),
    before_traps.length > 0 && h("p", null, selectionText(run)),
    before_traps.map((/** @type {any} */ before) => beforeTrap(run, before, limit)),
    endings.length === 0 && h("p", null, "No instruction was decoded."),
  ];
}

/** Which exceptions are shown. @param {Run} run */
function selectionText(run) {
  const shown = run.data.before_traps.length;
  const exceptions = run.data.interrupts.filter((/** @type {any} */ row) => !row.interrupt);
  const all = exceptions.reduce((/** @type {number} */ sum, /** @type {any} */ row) => sum + row.count, 0);
  if (shown >= all) return "All exceptions of the trace.";
  return [
    count(shown) + " of " + plural(all, "exception") + ": the first and the last of each cause and hart. ",
    h("a", { href: link("interrupts", run.number) }, "All traps"),
  ];
}

/** How a track ended, linked to the exception that it did not return from. @param {Run} run @param {any} ending */
export function endingText(run, ending) {
  if (typeof ending.trap !== "number") return ending.how;
  return [h("span", { class: "exception-sign" }, "\u25c6 "), trapLink(run, ending.trap, ending.how)];
}

/** What ran before an exception. @param {Run} run @param {any} before @param {number} limit */
function beforeTrap(run, before, limit) {
  const { traps } = run.data;
  const track = traps.track[before.trap];
  const title = run.trapName(before.trap) + " at " + run.axis.position(traps.at[before.trap]);
  return h(
    "section",
    null,
    h(
      "h3",
      null,
      trapLink(run, before.trap, title),
      " in " + run.interruptedName(before.trap) + ", " + run.trackName(track),
    ),
    before.again &&
      h("p", { class: "soft" }, "At the same position as the one before: nothing was executed in between."),
    h(
      "div",
      { class: "with-callers" },
      before.rows.address.length > 0 &&
        instructionsTable(run, track, before.rows, "Instructions before the " + title, limit).element,
      before.callers && callersList(run, before.callers),
    ),
  );
}

/** The calls and traps that had not returned, the innermost first. @param {Run} run @param {any} callers */
function callersList(run, callers) {
  if (callers.address.length === 0) return null;
  return h(
    "div",
    { class: "chain" },
    h("h4", null, "Called by"),
    h(
      "ol",
      { class: "callers" },
      callers.function.map((/** @type {number} */ number, /** @type {number} */ place) =>
        h(
          "li",
          null,
          callers.trap[place] && h("span", { class: "exception-sign" }, callers.trap[place] + " in "),
          functionLink(run, number),
          " ",
          addressLink(run, number, callers.address[place]),
          " ",
          sourceLink(run, callers.file[place], callers.line[place]),
        ),
      ),
    ),
  );
}

/**
 * Instructions in the order they were executed.
 * @param {Run} run @param {number} track @param {any} rows @param {string} caption
 * @param {number} limit shows the last ones
 */
function instructionsTable(run, track, rows, caption, limit) {
  const last = rows.address.length - 1;
  const table = new Table({
    caption,
    length: rows.address.length,
    rowClass: (row) => (row === last ? "last" : ""),
    columns: [
      {
        key: "at",
        label: run.axis.isTime ? "Time" : "Number",
        numeric: true,
        cell: (row) => timelineLink(run, track, rows.at[row], 0),
      },
      {
        key: "address",
        label: "Address",
        header: true,
        cell: (row) => addressLink(run, rows.function[row], rows.address[row]),
      },
      { key: "text", label: "Instruction", class: "mono wide", cell: (row) => rows.text[row] },
      {
        key: "note",
        label: "What happened",
        cell: (row) =>
          rows.note[row]
            ? h("span", { class: rows.kind?.[row] > 0 ? "exception-sign" : "" }, rows.note[row])
            : null,
      },
      { key: "function", label: "Function", cell: (row) => functionLink(run, rows.function[row]) },
      { key: "source", label: "Source", cell: (row) => sourceLink(run, rows.file[row], rows.line[row]) },
    ],
  });
  if (limit <= last) table.show((row) => row > last - limit);
  return table;
}
