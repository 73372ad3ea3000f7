/**
 * The trace itself: what its bytes are spent on, how many per time, and where it has
 * gaps.
 */

import { area } from "../ui/chart.js";
import { h } from "../ui/dom.js";
import { bytes, count, plural } from "../ui/format.js";
import { Table } from "../ui/table.js";
import { amount, heading, timelineLink } from "./links.js";

/** @typedef {import("../data/run.js").Run} Run */

/** @param {import("../shell.js").Context} context @param {Run} run */
export function traceView(context, run) {
  const { statistics } = run.data;
  const { bandwidth } = statistics;
  const density = statistics.bits_per_instruction
    ? ", " + statistics.bits_per_instruction.toFixed(3) + " bits per instruction"
    : "";
  return {
    element: h(
      "div",
      { class: "view" },
      heading("Trace", run.data.format + ", " + bytes(run.data.bytes) + density + "."),
      h("section", null, h("h2", null, "Bytes by message"), messagesTable(run).element),
      bandwidth && bandwidth.x.length > 0
        ? h(
            "section",
            null,
            h("h2", null, "Bandwidth"),
            area(bandwidth.x, bandwidth.bytes, bandwidthLabel(run), bandwidth.unit),
          )
        : null,
      h("section", null, h("h2", null, "Gaps"), gapsTable(run).element),
    ),
  };
}

/** Bytes are counted by instructions where messages have no timestamp. @param {Run} run */
function bandwidthLabel(run) {
  const { bandwidth } = run.data.statistics;
  return (/** @type {number} */ value) =>
    run.axis.isTime && bandwidth.is_timed === false ? plural(value, "instruction") : run.axis.position(value);
}

/** @param {Run} run */
function messagesTable(run) {
  const { messages } = run.data.statistics;
  const whole = messages.reduce((/** @type {number} */ sum, /** @type {any} */ row) => sum + row[2], 0);
  return new Table({
    caption: "Messages",
    length: messages.length,
    sort: "bytes",
    descending: true,
    empty: "The input has no messages.",
    columns: [
      {
        key: "kind",
        label: "Message",
        header: true,
        class: "wide",
        value: (row) => messages[row][0],
        cell: (row) => messages[row][0],
      },
      {
        key: "count",
        label: "Count",
        numeric: true,
        value: (row) => messages[row][1],
        cell: (row) => count(messages[row][1]),
      },
      {
        key: "bytes",
        label: "Bytes",
        numeric: true,
        value: (row) => messages[row][2],
        cell: (row) => amount(messages[row][2], whole),
      },
      {
        key: "mean",
        label: "Bytes each",
        numeric: true,
        value: (row) => messages[row][2] / (messages[row][1] || 1),
        cell: (row) => (messages[row][2] / (messages[row][1] || 1)).toFixed(2),
      },
    ],
  });
}

/** @param {Run} run */
function gapsTable(run) {
  const { gaps } = run.data;
  return new Table({
    caption: "Gaps",
    length: gaps.at.length,
    empty: "None: the trace was decoded completely.",
    columns: [
      {
        key: "at",
        label: "At",
        header: true,
        numeric: true,
        value: (row) => gaps.at[row],
        cell: (row) => timelineLink(run, gaps.track[row], gaps.at[row], gaps.end[row] - gaps.at[row]),
      },
      {
        key: "track",
        label: "Track",
        value: (row) => gaps.track[row],
        cell: (row) => run.trackName(gaps.track[row]),
      },
      {
        key: "length",
        label: "Length",
        numeric: true,
        value: (row) => gaps.end[row] - gaps.at[row],
        cell: (row) => run.axis.shortSpan(gaps.end[row] - gaps.at[row]),
      },
      {
        key: "bytes",
        label: "Bytes skipped",
        numeric: true,
        value: (row) => gaps.bytes[row],
        cell: (row) => count(gaps.bytes[row]),
      },
      {
        key: "code",
        label: "Code",
        class: "mono",
        value: (row) => gaps.code[row],
        cell: (row) => gaps.code[row],
      },
      {
        key: "reason",
        label: "Reason",
        class: "wide",
        value: (row) => run.string(gaps.reason[row]),
        cell: (row) => run.string(gaps.reason[row]),
      },
    ],
  });
}
