/**
 * The functions of a run, with what they cost and how much of them was executed.
 */

import { matcher } from "../data/search.js";
import { link } from "../route.js";
import { h } from "../ui/dom.js";
import { count, percent, plural } from "../ui/format.js";
import { Table, filterField } from "../ui/table.js";
import { amount, functionLink, heading, sourceLink } from "./links.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {Run} run */
export function functionsTable(run) {
  const { functions, axis } = run;
  const whole = run.data.instructions;
  const wholeTime = functions.self_time
    ? functions.self_time.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0)
    : 0;
  const number = (/** @type {string} */ key) => (/** @type {number} */ row) => functions[key][row];
  /** @type {import("../ui/table.js").Column[]} */
  const columns = [
    {
      key: "name",
      label: "Function",
      header: true,
      class: "wide",
      value: (row) => run.functionName(row),
      cell: (row) => functionLink(run, row),
    },
    {
      key: "self",
      label: "Self",
      title: "Instructions of the function itself",
      numeric: true,
      value: number("self"),
      cell: (row) => amount(functions.self[row], whole),
    },
    {
      key: "total",
      label: "Total",
      title: "Instructions including what it called",
      numeric: true,
      value: number("total"),
      cell: (row) => amount(functions.total[row], whole),
    },
  ];
  if (functions.self_time) {
    columns.push(
      {
        key: "self_time",
        label: "Self time",
        numeric: true,
        value: number("self_time"),
        cell: (row) => amount(functions.self_time[row], wholeTime, axis.shortSpan(functions.self_time[row])),
      },
      {
        key: "total_time",
        label: "Total time",
        numeric: true,
        value: number("total_time"),
        cell: (row) => axis.shortSpan(functions.total_time[row]),
      },
    );
  }
  columns.push(
    {
      key: "calls",
      label: "Calls",
      numeric: true,
      value: number("calls"),
      cell: (row) => count(functions.calls[row]),
    },
    {
      key: "covered",
      label: "Executed",
      title: "Instructions of the function that were executed at least once",
      numeric: true,
      value: (row) => (functions.insns[row] > 0 ? functions.covered[row] / functions.insns[row] : 0),
      cell: (row) => coverage(functions.covered[row], functions.insns[row]),
    },
    {
      key: "source",
      label: "Source",
      value: (row) => run.place(functions.file[row], functions.line[row]),
      cell: (row) => sourceLink(run, functions.file[row], functions.line[row]),
    },
    {
      key: "show",
      label: "Show in",
      cell: (row) => [
        h("a", { href: link("timeline", run.number, [], { search: run.functionName(row) }) }, "timeline"),
        " \u00b7 ",
        h("a", { href: link("flame", run.number, [], { search: run.functionName(row) }) }, "flame"),
      ],
    },
  );
  return new Table({
    caption: "Functions",
    columns,
    length: run.functionCount,
    sort: "self",
    descending: true,
    empty: "No function matches.",
  });
}

/** @param {number} covered @param {number} all */
function coverage(covered, all) {
  const symbol = covered === 0 ? "\u25cb" : covered >= all ? "\u25cf" : "\u25d0";
  return h(
    "span",
    {
      class: covered === 0 ? "none" : covered >= all ? "full" : "part",
      title: count(covered) + " of " + count(all),
    },
    percent(covered, all),
    " ",
    symbol,
  );
}

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {import("../route.js").Route} route
 */
export function functionsView(context, run, route) {
  const table = functionsTable(run);
  const status = h("span", { class: "search-status", role: "status" });
  const executed = h("input", { type: "checkbox", checked: true, on: { change: () => apply() } });
  const field = filterField("Filter functions", () => apply());
  field.value = route.query.filter ?? "";
  const apply = () => {
    const matches = field.value.trim() ? matcher(field.value) : () => true;
    table.show((row) => (!executed.checked || run.isExecuted(row)) && matches(run.functionName(row)));
    status.textContent = count(table.rows.length) + " of " + plural(run.functionCount, "function");
  };
  apply();
  const element = h(
    "div",
    { class: "view filling" },
    heading("Functions"),
    h("div", { class: "toolbar" }, field, h("label", null, executed, " only executed"), status),
    table.element,
  );
  return { element };
}
