/**
 * How it ended: the last instructions of each track, and what ran before exceptions.
 */

import { h } from "../ui/dom.js";
import { Table } from "../ui/table.js";
import { addressLink, functionLink, heading, sourceLink, timelineLink } from "./links.js";

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
  const { endings, before_traps, traps } = run.data;
  return [
    endings.map((/** @type {any} */ ending) =>
      h(
        "section",
        null,
        h("h2", null, run.trackName(ending.track)),
        h("p", null, ending.how),
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
    before_traps.map((/** @type {any} */ before) => {
      const track = traps.track[before.trap];
      const at = traps.at[before.trap];
      const title = run.trapName(before.trap) + " at " + run.axis.position(at);
      return h(
        "section",
        null,
        h(
          "h3",
          null,
          timelineLink(run, track, at, run.trapLength(before.trap) ?? 0, title),
          " in " + run.functionName(traps.function[before.trap]) + ", " + run.trackName(track),
        ),
        instructionsTable(run, track, before.rows, "Instructions before the " + title, limit).element,
      );
    }),
    endings.length === 0 && h("p", null, "No instruction was decoded."),
  ];
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
        label: run.axis.isTime ? "Time" : "Instruction",
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
            ? h(
                "span",
                { class: /trap|exception|fault/.test(rows.note[row]) ? "exception-sign" : "" },
                rows.note[row],
              )
            : null,
      },
      { key: "function", label: "Function", cell: (row) => functionLink(run, rows.function[row]) },
      { key: "source", label: "Source", cell: (row) => sourceLink(run, rows.file[row], rows.line[row]) },
    ],
  });
  if (limit <= last) table.show((row) => row > last - limit);
  return table;
}
