/**
 * The instructions of a function with how often each was executed, the directions of
 * its branches, and the source they come from.
 */

import { link } from "../route.js";
import { h } from "../ui/dom.js";
import { compact, count, percent, plural } from "../ui/format.js";
import { Table } from "../ui/table.js";
import { direction } from "./branches.js";
import { heading, sourceLink, swatch } from "./links.js";
import { heat, heatCell, picker, showTarget, sideBySide } from "./picker.js";

/** @typedef {import("../data/run.js").Run} Run */

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {import("../route.js").Route} route
 */
export function codeView(context, run, route) {
  const asked = route.parts.length > 0 ? Number.parseInt(route.parts[0], 10) : -1;
  const current = asked >= 0 && asked < run.functionCount ? asked : (run.hottest(1)[0] ?? -1);
  const names = Array.from({ length: run.functionCount }, (_, number) => run.functionName(number));
  const list = picker({
    caption: "Functions",
    names,
    current,
    href: (row) => link("code", run.number, [row]),
    number: {
      label: "Self",
      value: (row) => run.functions.self[row],
      cell: (row) => compact(run.functions.self[row]),
    },
  });
  const chosen = h("div", { class: "chosen" });
  const element = h("div", { class: "view filling" }, heading("Code"), sideBySide(list.element, chosen));
  const shown = () => list.table.reveal(current);
  if (current < 0) {
    chosen.append(h("p", null, "The program has no function."));
    return { element };
  }
  chosen.append(functionHeading(run, current));
  const ready = showRows(context, run, current, route, chosen);
  return { element, shown, ready };
}

/** @param {Run} run @param {number} number */
function functionHeading(run, number) {
  const { functions } = run;
  const name = run.functionName(number);
  return [
    h("h2", null, swatch(name), name),
    h(
      "p",
      { class: "soft" },
      functions.address[number] +
        ", " +
        plural(functions.insns[number], "instruction") +
        ", " +
        percent(functions.covered[number], functions.insns[number]) +
        " of them executed; self " +
        count(functions.self[number]) +
        ", total " +
        count(functions.total[number]) +
        ", " +
        plural(functions.calls[number], "call") +
        " ",
      sourceLink(run, functions.file[number], functions.line[number]),
      " ",
      h("a", { href: link("timeline", run.number, [], { search: name }) }, "timeline"),
      " ",
      h("a", { href: link("flame", run.number, [], { search: name }) }, "flame graph"),
    ),
  ].reduce((parent, child) => (parent.append(child), parent), h("header", null));
}

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {number} number
 * @param {import("../route.js").Route} route @param {HTMLElement} parent
 */
async function showRows(context, run, number, route, parent) {
  const rows = await context.backend.code(run, number);
  if (!rows) {
    parent.append(
      h(
        "p",
        { class: "note" },
        "The instructions of this function are not in the report. hartrace report keeps those that were executed; see what was left out in the ",
        h("a", { href: link("overview", run.number) }, "overview"),
        ".",
      ),
    );
    return;
  }
  const lines = await sourceLines(context, run, rows);
  const table = codeTable(run, rows, lines);
  parent.append(table.element);
  const target = targetRow(rows, route.query);
  if (target >= 0) showTarget(table, target);
}

/**
 * The row that an address of the page asks for, -1: none.
 * @param {any} rows @param {Record<string, string>} query
 */
function targetRow(rows, query) {
  if (query.address) return rows.address.indexOf(query.address);
  if (!query.line) return -1;
  return rows.line.findIndex(
    (/** @type {number} */ line, /** @type {number} */ row) =>
      line === Number(query.line) && rows.file[row] === Number(query.file),
  );
}

/**
 * The text of the lines that the instructions come from.
 * @param {import("../shell.js").Context} context @param {Run} run @param {any} rows
 */
async function sourceLines(context, run, rows) {
  const files = new Map();
  for (const file of new Set(rows.file))
    if (/** @type {number} */ (file) >= 0)
      files.set(file, await context.backend.source(run, /** @type {number} */ (file)));
  return (/** @type {number} */ file, /** @type {number} */ line) => {
    const source = files.get(file);
    return source ? (source.lines[line - source.first] ?? "").trim() : "";
  };
}

/** @param {Run} run @param {any} rows @param {(file: number, line: number) => string} lineText */
export function codeTable(run, rows, lineText) {
  let most = 1;
  for (const number of rows.count) most = Math.max(most, number);
  const isBranch = (/** @type {number} */ row) => rows.taken[row] >= 0 && rows.not_taken[row] >= 0;
  const startsLine = (/** @type {number} */ row) =>
    row === 0 || rows.line[row] !== rows.line[row - 1] || rows.file[row] !== rows.file[row - 1];
  return new Table({
    caption: "Instructions",
    length: rows.address.length,
    rowClass: (row) => (rows.count[row] > 0 ? "ran" : "idle") + (startsLine(row) ? " starts" : ""),
    columns: [
      { key: "mark", label: "Executed", quiet: true, class: "mark", cell: (row) => mark(rows.count[row]) },
      {
        key: "count",
        label: "Count",
        numeric: true,
        cell: (row) => [heatCell(heat(rows.count[row], most)), count(rows.count[row])],
      },
      { key: "address", label: "Address", header: true, class: "mono", cell: (row) => rows.address[row] },
      { key: "bytes", label: "Bytes", class: "mono soft", cell: (row) => rows.bytes[row] },
      {
        key: "text",
        label: "Instruction",
        class: "mono wide",
        cell: (row) => instruction(run, rows.text[row], rows.target[row]),
      },
      {
        key: "branch",
        label: "Branch",
        cell: (row) =>
          isBranch(row)
            ? [
                direction(rows.taken[row], rows.not_taken[row]),
                rows.taken[row] + rows.not_taken[row] > 0 &&
                  h(
                    "span",
                    { class: "soft" },
                    " " + compact(rows.taken[row]) + " / " + compact(rows.not_taken[row]),
                  ),
              ]
            : null,
      },
      {
        key: "source",
        label: "Source",
        class: "source-text",
        cell: (row) =>
          startsLine(row)
            ? [
                sourceLink(run, rows.file[row], rows.line[row]),
                " ",
                h("code", null, lineText(rows.file[row], rows.line[row])),
              ]
            : null,
      },
    ],
  });
}

/** @param {number} number */
function mark(number) {
  return h(
    "span",
    { class: number > 0 ? "full" : "none", title: number > 0 ? "executed" : "never executed" },
    number > 0 ? "\u25cf" : "\u25cb",
    h("span", { class: "visually-hidden" }, number > 0 ? "executed" : "never executed"),
  );
}

/**
 * The text of an instruction, with the target of a jump as a link where the text names
 * it, or after the text.
 * @param {Run} run @param {string} text @param {string|null} address
 */
function instruction(run, text, address) {
  const number = address ? run.functionAt(address) : -1;
  if (!address || number < 0) return text;
  const name = run.functionName(number);
  const to = (/** @type {string} */ label, /** @type {string|null} */ kind) =>
    h("a", { class: kind, href: link("code", run.number, [number], { address }) }, label);
  // Disassembly writes addresses without 0x, followed by the name.
  for (const part of [address.slice(2), name]) {
    const at = text.lastIndexOf(part);
    if (at > 0) return [text.slice(0, at), to(text.slice(at), null)];
  }
  return [text, to("\u2192 " + name, "jump")];
}
