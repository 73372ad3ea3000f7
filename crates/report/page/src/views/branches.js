/**
 * Conditional branches, and those that only ever went one way.
 */

import { matcher } from "../data/search.js";
import { h } from "../ui/dom.js";
import { count, percent, plural } from "../ui/format.js";
import { bar } from "../ui/chart.js";
import { Table, filterField } from "../ui/table.js";
import { addressLink, functionLink, heading, sourceLink } from "./links.js";

/** @typedef {import("../data/run.js").Run} Run */

const CHOICES = [
  ["all", "All"],
  ["never", "Never taken"],
  ["always", "Always taken"],
  ["both", "Both ways"],
];

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {import("../route.js").Route} route
 */
export function branchesView(context, run, route) {
  const { branches } = run.data;
  const times = (/** @type {number} */ row) => branches.taken[row] + branches.not_taken[row];
  const table = new Table({
    caption: "Branches",
    length: branches.address.length,
    sort: "times",
    descending: true,
    empty: "No branch matches.",
    columns: [
      {
        key: "address",
        label: "Branch",
        header: true,
        value: (row) => Number(branches.address[row]),
        cell: (row) => addressLink(run, branches.function[row], branches.address[row]),
      },
      {
        key: "function",
        label: "Function",
        class: "wide",
        value: (row) => run.functionName(branches.function[row]),
        cell: (row) => functionLink(run, branches.function[row]),
      },
      {
        key: "source",
        label: "Source",
        value: (row) => run.place(branches.file[row], branches.line[row]),
        cell: (row) => sourceLink(run, branches.file[row], branches.line[row]),
      },
      { key: "times", label: "Executed", numeric: true, value: times, cell: (row) => count(times(row)) },
      {
        key: "taken",
        label: "Taken",
        numeric: true,
        value: (row) => branches.taken[row],
        cell: (row) => count(branches.taken[row]),
      },
      {
        key: "not_taken",
        label: "Not taken",
        numeric: true,
        value: (row) => branches.not_taken[row],
        cell: (row) => count(branches.not_taken[row]),
      },
      {
        key: "share",
        label: "Taken, share",
        numeric: true,
        value: (row) => branches.taken[row] / (times(row) || 1),
        cell: (row) => [
          bar(branches.taken[row] / (times(row) || 1)),
          h("span", { class: "percent" }, percent(branches.taken[row], times(row))),
        ],
      },
      {
        key: "verdict",
        label: "Direction",
        cell: (row) => direction(branches.taken[row], branches.not_taken[row]),
      },
    ],
  });
  const status = h("span", { class: "search-status", role: "status" });
  let shown = CHOICES.some(([key]) => key === route.query.show) ? route.query.show : "all";
  const field = filterField("Filter by function", () => apply());
  const apply = () => {
    const matches = field.value.trim() ? matcher(field.value) : () => true;
    table.show(
      (row) =>
        passes(shown, branches.taken[row], branches.not_taken[row]) &&
        matches(run.functionName(branches.function[row])),
    );
    status.textContent = plural(table.rows.length, "branch", "branches");
  };
  const choices = h(
    "fieldset",
    { class: "choices" },
    h("legend", { class: "visually-hidden" }, "Which branches"),
    CHOICES.map(([key, label]) =>
      h(
        "label",
        null,
        h("input", {
          type: "radio",
          name: "branches",
          value: key,
          checked: key === shown,
          on: { change: () => ((shown = key), apply()) },
        }),
        " " + label,
      ),
    ),
  );
  apply();
  return {
    element: h(
      "div",
      { class: "view filling" },
      heading("Branches"),
      h("div", { class: "toolbar" }, field, choices, status),
      table.element,
    ),
  };
}

/** @param {string} shown @param {number} taken @param {number} notTaken */
function passes(shown, taken, notTaken) {
  if (shown === "never") return taken === 0;
  if (shown === "always") return notTaken === 0;
  return shown === "all" || (taken > 0 && notTaken > 0);
}

/** In words and with a sign, not by colour alone. @param {number} taken @param {number} notTaken */
export function direction(taken, notTaken) {
  if (taken + notTaken === 0) return h("span", { class: "none" }, "\u25cb not executed");
  if (taken === 0) return h("span", { class: "part" }, "\u2193 never taken");
  if (notTaken === 0) return h("span", { class: "part" }, "\u21b7 always taken");
  return h("span", { class: "full" }, "\u21c5 both ways");
}
