/**
 * The slices that are seen, as a table: what a canvas cannot give to a screen reader.
 */

import { kindName } from "../data/run.js";
import { fill, h, settle } from "../ui/dom.js";

/** Slices in the table. */
const LIMIT = 200;

/** @param {import("../stage/stage.js").Stage} stage */
export function visibleTable(stage) {
  const body = h("tbody", null);
  const caption = h("caption", null, "Visible slices");
  const table = h(
    "table",
    { class: "data" },
    caption,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["Function", "Kind", "Lane", "Depth", "Begin", "Duration"].map((label, place) =>
          h("th", { scope: "col", class: place > 2 ? "number" : null }, label),
        ),
      ),
    ),
    body,
  );
  const element = h(
    "details",
    { class: "visible" },
    h("summary", null, "Visible slices as a table"),
    h("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Visible slices" }, table),
  );
  const draw = () => {
    if (!element.open) return;
    const rows = rowsOf(stage);
    caption.textContent =
      "The " +
      rows.length +
      " longest slices between " +
      stage.axis.position(stage.view.from) +
      " and " +
      stage.axis.position(stage.view.until);
    fill(
      body,
      rows.map((row) => rowElement(stage, row)),
    );
  };
  element.addEventListener("toggle", draw);
  return { element, update: settle(200, draw) };
}

/** @param {import("../stage/stage.js").Stage} stage */
function rowsOf(stage) {
  const each = Math.max(10, Math.floor(LIMIT / Math.max(1, stage.lanes.length)));
  return stage.lanes.flatMap(({ isHidden }, lane) =>
    isHidden
      ? []
      : stage
          .index(lane)
          .longest(stage.view.from, stage.view.until, each)
          .map((slice) => stage.selectionOf(lane, slice)),
  );
}

/** @param {import("../stage/stage.js").Stage} stage @param {import("../stage/stage.js").Selection} row */
function rowElement(stage, row) {
  const lane = stage.lanes[row.lane];
  return h(
    "tr",
    null,
    h(
      "th",
      { scope: "row" },
      h(
        "button",
        { type: "button", class: "plain", on: { click: () => stage.select(row, true) } },
        lane.run.label(row.function),
      ),
    ),
    h("td", null, kindName(row.kind)),
    h("td", null, lane.title),
    h("td", { class: "number" }, String(row.depth)),
    h("td", { class: "number" }, stage.axis.position(row.begin)),
    h("td", { class: "number" }, stage.axis.span(row.end - row.begin)),
  );
}
