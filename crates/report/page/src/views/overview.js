/**
 * The first thing seen: what was traced, the answers to the usual questions with links
 * to the views that explain them, and what the report does not contain.
 */

import { h } from "../ui/dom.js";
import { bytes, count, percent, plural, seconds } from "../ui/format.js";
import { link } from "../route.js";
import { endingText } from "./endings.js";
import { addressLink, amount, functionLink, heading, sourceLink, timelineLink, worstLink } from "./links.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {import("../shell.js").Context} context @param {Run} run */
export function overviewView(context, run) {
  return {
    element: h(
      "div",
      { class: "view overview" },
      heading(run.name, "What was traced, and where to look first."),
      overviewParts(run),
    ),
  };
}

/** What is also printed. @param {Run} run */
export function overviewParts(run) {
  return [
    warnings(run),
    facts(run),
    h("div", { class: "cards" }, hottest(run), worstInterrupts(run), endings(run), oneWay(run), gaps(run)),
    leftOut(run),
    settings(run),
  ];
}

/** Why the page may be wrong. @param {Run} run */
function warnings(run) {
  const list = run.data.warnings || [];
  if (list.length === 0) return null;
  return h(
    "section",
    { class: "note warning", role: "alert" },
    h("h2", null, "\u26a0 Read this page with care"),
    h(
      "ul",
      null,
      list.map((/** @type {string} */ text) => h("li", null, text)),
    ),
  );
}

/** @param {Run} run */
function facts(run) {
  const { data } = run;
  const rows = [
    ["Instructions", count(data.instructions)],
    ["Time", timeOf(run)],
    ["Trace", data.format + ", " + bytes(data.bytes)],
    data.statistics?.bits_per_instruction
      ? ["Density", data.statistics.bits_per_instruction.toFixed(3) + " bits per instruction"]
      : null,
    ["Program", data.program.join(", ") || "none"],
    ["Tracks", count(run.tracks.length)],
    ["Functions", count(run.executedCount) + " executed, of " + count(run.functionCount)],
    ["Traps", count(run.trapCount)],
    ["Gaps", count(data.gaps.at.length)],
  ];
  return h(
    "dl",
    { class: "facts" },
    rows.map((row) => row && h("div", null, h("dt", null, row[0]), h("dd", null, row[1]))),
  );
}

/** @param {Run} run */
function timeOf(run) {
  const { axis, data } = run;
  if (typeof data.seconds === "number") return seconds(data.seconds);
  return axis.isTime ? axis.span(axis.until - axis.from) : "no timestamps";
}

/** @param {string} title @param {string|null} href @param {any[]} parts */
function card(title, href, ...parts) {
  return h(
    "section",
    { class: "card" },
    h("h2", null, title),
    parts,
    href ? h("p", { class: "more" }, h("a", { href }, "Show all")) : null,
  );
}

/** @param {Run} run */
function hottest(run) {
  const numbers = run.hottest(8);
  const whole = run.data.instructions;
  const list = numbers.map((number) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, functionLink(run, number)),
      h("td", { class: "number" }, amount(run.functions.self[number], whole)),
    ),
  );
  return card(
    "Hottest functions",
    link("functions", run.number),
    numbers.length > 0
      ? h(
          "table",
          { class: "plain" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              h("th", { scope: "col" }, "Function"),
              h("th", { scope: "col", class: "number" }, "Own instructions"),
            ),
          ),
          h("tbody", null, list),
        )
      : h("p", null, "No instruction was decoded."),
  );
}

/** @param {Run} run */
function worstInterrupts(run) {
  const rows = run.data.interrupts.filter((/** @type {any} */ row) => row.count > 0);
  const withWorst = rows
    .map((/** @type {any} */ row) => ({ row, worst: row.worst?.[0] }))
    .sort(
      (/** @type {any} */ a, /** @type {any} */ b) => (b.worst?.duration ?? 0) - (a.worst?.duration ?? 0),
    );
  const list = withWorst
    .slice(0, 6)
    .map(({ row, worst }) =>
      h(
        "tr",
        null,
        h("th", { scope: "row" }, row.name),
        h("td", { class: "number" }, count(row.count)),
        h("td", { class: "number" }, worst ? worstLink(run, worst) : "\u2013"),
      ),
    );
  return card(
    "Interrupts and traps",
    rows.length > 0 ? link("interrupts", run.number) : null,
    rows.length > 0
      ? h(
          "table",
          { class: "plain" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              ["Cause", "Count", "Longest"].map((text, place) =>
                h("th", { scope: "col", class: place ? "number" : null }, text),
              ),
            ),
          ),
          h("tbody", null, list),
        )
      : h("p", null, "The trace has no trap."),
  );
}

/** @param {Run} run */
function endings(run) {
  const parts = run.data.endings.slice(0, 4).map((/** @type {any} */ ending) => {
    const last = ending.rows.address.length - 1;
    return h(
      "div",
      { class: "ending" },
      h("p", null, h("strong", null, run.trackName(ending.track)), ": ", endingText(run, ending)),
      last >= 0 &&
        h(
          "p",
          { class: "mono" },
          addressLink(run, ending.rows.function[last], ending.rows.address[last]),
          " ",
          ending.rows.text[last],
          " ",
          h(
            "span",
            { class: "soft" },
            "in ",
            run.functionName(ending.rows.function[last]),
            " ",
            sourceLink(run, ending.rows.file[last], ending.rows.line[last]),
          ),
        ),
    );
  });
  return card(
    "How it ended",
    parts.length > 0 ? link("endings", run.number) : null,
    parts.length > 0 ? parts : h("p", null, "The trace has no instructions."),
  );
}

/** @param {Run} run */
function oneWay(run) {
  const { never, always } = run.oneSidedBranches();
  const total = run.data.branches.address.length;
  return card(
    "Branches",
    link("branches", run.number),
    h(
      "ul",
      null,
      h(
        "li",
        null,
        h(
          "a",
          { href: link("branches", run.number, [], { show: "never" }) },
          plural(never.length, "branch", "branches") + " never taken",
        ),
        " (" + percent(never.length, total) + ")",
      ),
      h(
        "li",
        null,
        h(
          "a",
          { href: link("branches", run.number, [], { show: "always" }) },
          plural(always.length, "branch", "branches") + " always taken",
        ),
        " (" + percent(always.length, total) + ")",
      ),
      h("li", null, plural(total, "executed branch", "executed branches") + " in all"),
    ),
  );
}

/** Gaps by reason, each with the first of them. @param {Run} run */
function gaps(run) {
  const { gaps } = run.data;
  const groups = new Map();
  gaps.at.forEach((/** @type {number} */ at, /** @type {number} */ gap) => {
    const key = gaps.code[gap] + " " + gaps.reason[gap];
    if (groups.has(key)) groups.get(key).number += 1;
    else groups.set(key, { first: gap, number: 1 });
  });
  const list = [...groups.values()].map(({ first, number }) =>
    h(
      "li",
      null,
      plural(number, "time") + ": ",
      run.string(gaps.reason[first]),
      gaps.code[first] ? [" ", h("code", null, gaps.code[first])] : null,
      ", first at ",
      timelineLink(run, gaps.track[first], gaps.at[first], gaps.end[first] - gaps.at[first]),
    ),
  );
  return card(
    "Gaps in the trace",
    list.length > 0 ? link("trace", run.number) : null,
    list.length > 0 ? h("ul", null, list) : h("p", null, "None: the trace was decoded completely."),
  );
}

/** @param {Run} run */
function leftOut(run) {
  const list = run.data.left_out || [];
  if (list.length === 0) return null;
  return h(
    "section",
    { class: "note" },
    h("h2", null, "Not in this report"),
    h(
      "ul",
      null,
      list.map((/** @type {string} */ text) => h("li", null, text)),
    ),
  );
}

/** @param {Run} run */
function settings(run) {
  const list = run.data.settings || [];
  if (list.length === 0) return null;
  return h(
    "details",
    { class: "settings" },
    h("summary", null, "Settings of the trace"),
    h(
      "table",
      { class: "plain" },
      h(
        "tbody",
        null,
        list.map((/** @type {[string, string]} */ [key, value]) =>
          h("tr", null, h("th", { scope: "row" }, key), h("td", null, String(value))),
        ),
      ),
    ),
  );
}
