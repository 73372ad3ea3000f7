/**
 * Interrupts and exceptions: how many, how long, the worst of each cause, and all of
 * them in a table.
 */

import { histogram } from "../ui/chart.js";
import { h } from "../ui/dom.js";
import { count, plural } from "../ui/format.js";
import { Table } from "../ui/table.js";
import { addressLink, functionLink, heading, interruptedLink, trapLink, worstLink } from "./links.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {import("../shell.js").Context} context @param {Run} run */
export function interruptsView(context, run) {
  return {
    element: h(
      "div",
      { class: "view" },
      heading(
        "Interrupts and traps",
        "Durations count from the trap to the return from it" +
          (run.axis.isTime ? "" : ", in instructions") +
          ", without what other threads ran meanwhile, which is given apart.",
      ),
      interruptsParts(run),
      h("section", null, h("h2", null, "All traps"), trapsTable(run).element),
    ),
  };
}

/** What is also printed. @param {Run} run */
export function interruptsParts(run) {
  const rows = run.data.interrupts;
  if (rows.length === 0) return h("p", null, "The trace has no trap.");
  const longestFirst = [...rows].sort((a, b) => (b.duration?.max ?? 0) - (a.duration?.max ?? 0));
  return [
    rows.some((/** @type {any} */ row) => row.cause < 0) &&
      h(
        "p",
        { class: "soft" },
        "Traps without a cause have none in the trace" +
          (run.data.format.startsWith("N-Trace")
            ? ": N-Trace reports whether a trap was an interrupt or an exception, and not its number."
            : "."),
      ),
    h("section", { class: "causes" }, causesTable(run).element),
    h(
      "div",
      { class: "cards" },
      longestFirst.map((row) => cause(run, row)),
    ),
  ];
}

/** @param {Run} run */
function causesTable(run) {
  const rows = run.data.interrupts;
  const { axis } = run;
  const column = (/** @type {string} */ key, /** @type {string} */ label) => ({
    key,
    label,
    numeric: true,
    value: (/** @type {number} */ row) => rows[row].duration?.[key] ?? -1,
    cell: (/** @type {number} */ row) =>
      rows[row].duration ? axis.shortSpan(rows[row].duration[key]) : "\u2013",
  });
  return new Table({
    caption: "Traps by cause",
    length: rows.length,
    sort: "max",
    descending: true,
    columns: [
      {
        key: "name",
        label: "Cause",
        header: true,
        class: "wide",
        value: (row) => rows[row].name,
        cell: (row) => [sign(rows[row].interrupt), " ", rows[row].name],
      },
      {
        key: "count",
        label: "Count",
        numeric: true,
        value: (row) => rows[row].count,
        cell: (row) => count(rows[row].count),
      },
      column("min", "Shortest"),
      column("p50", "Median"),
      column("p90", "90 %"),
      column("p99", "99 %"),
      {
        ...column("max", "Longest"),
        cell: (row) => {
          const worst = rows[row].worst?.[0];
          if (!rows[row].duration) return "\u2013";
          const text = axis.shortSpan(rows[row].duration.max);
          return worst ? worstLink(run, worst) : text;
        },
      },
      {
        key: "nesting",
        label: "Nesting",
        title: "How deep traps of this cause were nested in others",
        numeric: true,
        value: (row) => rows[row].nesting,
        cell: (row) => count(rows[row].nesting),
      },
    ],
  });
}

/** The sign that the timeline uses. @param {boolean} interrupt */
function sign(interrupt) {
  return h(
    "span",
    { class: interrupt ? "interrupt-sign" : "exception-sign", title: interrupt ? "interrupt" : "exception" },
    interrupt ? "\u25bc" : "\u25c6",
    h("span", { class: "visually-hidden" }, interrupt ? "interrupt" : "exception"),
  );
}

/** @param {Run} run @param {any} row */
function cause(run, row) {
  const { axis } = run;
  const label = (/** @type {number} */ value) => axis.shortSpan(value);
  return h(
    "section",
    { class: "card" },
    h("h2", null, sign(row.interrupt), " ", row.name),
    h(
      "p",
      { class: "soft" },
      (row.interrupt ? "Interrupt" : "Exception") +
        (row.cause >= 0 ? " " + row.cause : "") +
        ", " +
        plural(row.count, "time") +
        (row.unfinished > 0 ? ", " + count(row.unfinished) + " without a return" : ""),
    ),
    row.duration?.histogram?.length > 0 ? histogram(row.duration.histogram, label, "Duration") : null,
    row.latency?.histogram?.length > 0 ? histogram(row.latency.histogram, label, "Latency") : null,
    row.worst?.length > 0
      ? [
          h("h3", null, "Longest"),
          h(
            "ol",
            { class: "worst" },
            row.worst.map((/** @type {any} */ one) =>
              h(
                "li",
                null,
                worstLink(run, one),
                h(
                  "span",
                  { class: "soft" },
                  inOthers(run, one.away) + " at " + axis.position(one.at) + ", " + run.trackName(one.track),
                ),
              ),
            ),
          ),
        ]
      : null,
  );
}

/** How long other threads ran before the return. @param {Run} run @param {number|undefined} away */
function inOthers(run, away) {
  return away ? ", and " + run.axis.shortSpan(away) + " in other threads," : "";
}

/** @param {Run} run */
export function trapsTable(run) {
  const { traps } = run.data;
  const { axis } = run;
  return new Table({
    caption: "All traps",
    length: traps.at.length,
    empty: "The trace has no trap.",
    columns: [
      {
        key: "at",
        label: "At",
        header: true,
        numeric: true,
        value: (row) => traps.at[row],
        cell: (row) => trapLink(run, row),
      },
      {
        key: "track",
        label: "Track",
        value: (row) => traps.track[row],
        cell: (row) => run.trackName(traps.track[row]),
      },
      {
        key: "cause",
        label: "Cause",
        class: "wide",
        value: (row) => run.trapName(row),
        cell: (row) => [sign(Boolean(traps.interrupt[row])), " ", run.trapName(row)],
      },
      {
        key: "length",
        label: "Duration",
        numeric: true,
        value: (row) => run.trapLength(row) ?? Infinity,
        cell: (row) =>
          run.trapLength(row) === null ? "never returned" : axis.shortSpan(run.trapLength(row) ?? 0),
      },
      ...(traps.away?.some(Boolean)
        ? [
            {
              key: "away",
              label: "In other threads",
              title: "How long the hart ran other threads before the return",
              numeric: true,
              value: (/** @type {number} */ row) => traps.away[row],
              cell: (/** @type {number} */ row) => axis.shortSpan(traps.away[row]),
            },
          ]
        : []),
      {
        key: "function",
        label: "Interrupted",
        value: (row) => run.interruptedName(row),
        cell: (row) => interruptedLink(run, row),
      },
      {
        key: "epc",
        label: "At address",
        value: (row) => Number(traps.epc[row] ?? -1),
        cell: (row) => addressLink(run, run.functionAt(traps.epc[row]), traps.epc[row]),
      },
      ...(traps.tval?.some(Boolean)
        ? [
            {
              key: "tval",
              label: "Trap value",
              class: "mono",
              cell: (/** @type {number} */ row) => traps.tval[row],
            },
          ]
        : []),
      {
        key: "handler",
        label: "Handler",
        value: (row) => run.functionName(traps.handler[row]),
        cell: (row) => functionLink(run, traps.handler[row]),
      },
    ],
  });
}
