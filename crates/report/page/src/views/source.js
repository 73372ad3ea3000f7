/**
 * Source files with how often each line was executed, and the branches on it.
 */

import { link } from "../route.js";
import { h } from "../ui/dom.js";
import { baseName, compact, count, percent, plural } from "../ui/format.js";
import { Table } from "../ui/table.js";
import { heading } from "./links.js";
import { heat, heatCell, picker, showTarget, sideBySide } from "./picker.js";

/**
 * @typedef {import("../data/run.js").Run} Run
 * @typedef {{file: number, lines: string[], numbers: number[], count: number[], first: number}} Source
 *   without text, `numbers` are the lines that `count` is about
 */

/**
 * Files that functions come from, most executed first.
 * @param {Run} run @returns {{file: number, self: number}[]}
 */
function filesOf(run) {
  const { file, self } = run.functions;
  const sums = new Map();
  file.forEach((/** @type {number} */ one, /** @type {number} */ number) => {
    if (one >= 0) sums.set(one, (sums.get(one) ?? 0) + self[number]);
  });
  for (const source of run.data.sources || []) if (!sums.has(source.file)) sums.set(source.file, 0);
  return [...sums].map(([one, sum]) => ({ file: one, self: sum })).sort((a, b) => b.self - a.self);
}

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {import("../route.js").Route} route
 */
export function sourceView(context, run, route) {
  const files = filesOf(run);
  const asked = route.parts.length > 0 ? Number.parseInt(route.parts[0], 10) : (files[0]?.file ?? -1);
  const current = files.findIndex((one) => one.file === asked);
  const list = picker({
    caption: "Files",
    names: files.map((one) => run.fileName(one.file)),
    short: (path) => path.split(/[\\/]/).slice(-2).join("/"),
    current,
    href: (row) => link("source", run.number, [files[row].file]),
    number: { label: "Count", value: (row) => files[row].self, cell: (row) => compact(files[row].self) },
  });
  const chosen = h("div", { class: "chosen" });
  const element = h("div", { class: "view filling" }, heading("Source"), sideBySide(list.element, chosen));
  if (asked < 0) {
    chosen.append(h("p", null, "The program has no line tables. Compile it with -g to see its source here."));
    return { element };
  }
  const ready = showFile(context, run, asked, Number(route.query.line) || 0, chosen);
  return { element, shown: () => list.table.reveal(current), ready };
}

/**
 * @param {import("../shell.js").Context} context @param {Run} run @param {number} file @param {number} line
 * @param {HTMLElement} parent
 */
async function showFile(context, run, file, line, parent) {
  const source = await context.backend.source(run, file);
  parent.append(h("h2", { title: run.fileName(file) }, baseName(run.fileName(file))));
  if (!source) {
    parent.append(
      h("p", { class: "soft" }, run.fileName(file)),
      h("p", { class: "note" }, "No line of this file was executed, or there was no room for it."),
    );
    return;
  }
  const lines = source.count.filter((/** @type {number} */ number) => number >= 0).length;
  const ran = source.count.filter((/** @type {number} */ number) => number > 0).length;
  parent.append(
    h(
      "p",
      { class: "soft" },
      run.fileName(file) +
        ": " +
        plural(lines, "line") +
        " with code, " +
        percent(ran, lines) +
        " of them executed",
    ),
  );
  if (hasNoText(source))
    parent.append(
      h(
        "p",
        { class: "note" },
        "The text of the file was not found: lines with code are shown with their counts only. " +
          "--source-dir names the folder to search.",
      ),
    );
  const table = sourceTable(run, source);
  parent.append(table.element);
  const row = hasNoText(source) ? source.numbers.indexOf(line) : line - source.first;
  if (line > 0 && row >= 0) showTarget(table, row);
}

/** Are there only counts? @param {Source} source */
function hasNoText(source) {
  return source.lines.length === 0 && (source.numbers?.length ?? 0) > 0;
}

/** The number of the line in a row. @param {Source} source @param {number} row */
function lineOf(source, row) {
  return hasNoText(source) ? source.numbers[row] : row + source.first;
}

/** Branches by line of a file. @param {Run} run @param {number} file @returns {Map<number, number[]>} */
function branchesByLine(run, file) {
  const { branches } = run.data;
  const result = new Map();
  branches.line.forEach((/** @type {number} */ line, /** @type {number} */ branch) => {
    if (branches.file[branch] !== file || !(line > 0)) return;
    if (!result.has(line)) result.set(line, []);
    result.get(line).push(branch);
  });
  return result;
}

/**
 * Which function has the code of a line: the last that starts before it.
 * @param {Run} run @param {number} file
 */
function functionByLine(run, file) {
  const { functions } = run;
  const starts = [];
  for (let number = 0; number < run.functionCount; number++)
    if (functions.file[number] === file) starts.push(number);
  starts.sort((a, b) => functions.line[a] - functions.line[b]);
  return (/** @type {number} */ line) => starts.findLast((number) => functions.line[number] <= line) ?? -1;
}

/** @param {Run} run @param {Source} source */
export function sourceTable(run, source) {
  let most = 1;
  for (const number of source.count) most = Math.max(most, number);
  const branches = branchesByLine(run, source.file);
  const functionOf = functionByLine(run, source.file);
  const { taken, not_taken } = run.data.branches;
  const partial = (/** @type {number} */ row) =>
    (branches.get(lineOf(source, row)) ?? []).some(
      (branch) => taken[branch] === 0 || not_taken[branch] === 0,
    );
  return new Table({
    caption: "Lines of the source",
    length: source.count.length,
    rowClass: (row) => (source.count[row] > 0 ? "ran" : source.count[row] === 0 ? "idle" : "plain"),
    columns: [
      {
        key: "mark",
        label: "Executed",
        quiet: true,
        class: "mark",
        cell: (row) => mark(source.count[row], partial(row)),
      },
      {
        key: "count",
        label: "Count",
        numeric: true,
        cell: (row) =>
          source.count[row] < 0 ? null : [heatCell(heat(source.count[row], most)), count(source.count[row])],
      },
      {
        key: "line",
        label: "Line",
        header: true,
        numeric: true,
        cell: (row) => lineCell(run, source, row, functionOf),
      },
      ...(hasNoText(source)
        ? []
        : [
            {
              key: "text",
              label: "Source",
              class: "code",
              cell: (/** @type {number} */ row) => source.lines[row] ?? "",
            },
          ]),
      {
        key: "branches",
        label: "Branches",
        cell: (row) =>
          (branches.get(lineOf(source, row)) ?? []).map((branch) =>
            branchText(taken[branch], not_taken[branch]),
          ),
      },
    ],
  });
}

/**
 * @param {Run} run @param {Source} source @param {number} row
 * @param {(line: number) => number} functionOf
 */
function lineCell(run, source, row, functionOf) {
  const line = lineOf(source, row);
  if (source.count[row] < 0) return String(line);
  const exact = run.codeOfLine(source.file, line);
  const number = exact ? exact.number : functionOf(line);
  if (number < 0) return String(line);
  const place = exact ? { address: exact.address } : { file: source.file, line };
  return h(
    "a",
    { href: link("code", run.number, [number], place), title: "Instructions of this line" },
    String(line),
  );
}

/** @param {number} number -1: no code @param {boolean} partial */
function mark(number, partial) {
  if (number < 0) return null;
  const [kind, symbol, text] =
    number === 0
      ? ["none", "\u25cb", "never executed"]
      : partial
        ? ["part", "\u25d0", "executed, but a branch went only one way"]
        : ["full", "\u25cf", "executed"];
  return h("span", { class: kind, title: text }, symbol, h("span", { class: "visually-hidden" }, text));
}

/** @param {number} taken @param {number} notTaken */
function branchText(taken, notTaken) {
  const oneSided = taken === 0 || notTaken === 0;
  return h(
    "span",
    { class: "branch " + (oneSided ? "part" : "full"), title: "times taken / not taken" },
    "\u21b7 " + compact(taken) + " / " + compact(notTaken),
  );
}
