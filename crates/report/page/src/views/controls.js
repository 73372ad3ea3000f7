/**
 * Buttons, legend and help that every view with a stage has.
 */

import { h } from "../ui/dom.js";

/** @param {import("../stage/stage.js").Stage} stage */
export function zoomButtons(stage) {
  const button = (
    /** @type {string} */ text,
    /** @type {string} */ label,
    /** @type {() => void} */ action,
  ) => h("button", { type: "button", title: label, "aria-label": label, on: { click: action } }, text);
  return h(
    "div",
    { class: "buttons", role: "group", "aria-label": "Zoom" },
    button("+", "Zoom in (W)", () => stage.zoomAt(0.5, stage.focusX())),
    button("\u2212", "Zoom out (S)", () => stage.zoomAt(2, stage.focusX())),
    button("Selection", "Zoom to the selection (Enter)", () => stage.zoomToSelection()),
    button("All", "Show all (0)", () => stage.showAll()),
  );
}

/** Which lanes are shown; nothing to choose from one. @param {import("../stage/stage.js").Stage} stage */
export function trackChooser(stage) {
  if (stage.lanes.length < 2) return null;
  const boxes = stage.lanes.map((lane) =>
    h("input", { type: "checkbox", checked: true, on: { change: () => apply() } }),
  );
  const apply = () => stage.showLanes(boxes.map((box) => box.checked));
  const all = (/** @type {boolean} */ checked) => {
    for (const box of boxes) box.checked = checked;
    apply();
  };
  return h(
    "details",
    { class: "popover" },
    h("summary", null, "Tracks"),
    h(
      "div",
      { class: "track-list" },
      h(
        "p",
        null,
        h("button", { type: "button", on: { click: () => all(true) } }, "All"),
        " ",
        h("button", { type: "button", on: { click: () => all(false) } }, "None"),
      ),
      stage.lanes.map((lane, number) => h("label", null, boxes[number], " ", lane.title)),
    ),
  );
}

/** Which part is seen. @param {import("../stage/stage.js").Stage} stage */
export function windowText(stage) {
  const { view, axis } = stage;
  return (
    axis.position(view.from) + " \u2013 " + axis.position(view.until) + " (" + axis.span(view.width) + ")"
  );
}

const KEYS = [
  ["W S or + \u2212, wheel, pinch", "zoom"],
  ["A D, drag, Shift + arrows", "pan"],
  ["0", "show all"],
  ["Enter", "select the first slice; zoom to the selected one"],
  ["\u2190 \u2192", "previous or next slice of the same depth"],
  ["\u2191 \u2193", "caller, or first call inside"],
  ["Escape", "select nothing"],
  ["/", "search; Enter and Shift + Enter step through the hits"],
];

export function keysHelp() {
  return h(
    "details",
    { class: "popover" },
    h("summary", null, "Keys"),
    h(
      "table",
      { class: "plain" },
      h(
        "tbody",
        null,
        KEYS.map(([keys, text]) => h("tr", null, h("th", { scope: "row" }, keys), h("td", null, text))),
      ),
    ),
  );
}

const LEGEND = [
  ["call", "", "call; each function has its colour"],
  ["tail", "\u21aa", "tail call"],
  ["interrupt", "\u25bc", "interrupt and its handler"],
  ["exception", "\u25c6", "exception and its handler"],
  ["gap", "\u2715", "gap in the trace"],
  ["other", "", "another thread, or idle"],
  ["summary", "\u00d7", "many short calls drawn as one"],
  ["dashed", "?", "dashed edge: not seen, inferred or doubtful"],
];

export function legend() {
  return h(
    "details",
    { class: "popover" },
    h("summary", null, "Legend"),
    h(
      "ul",
      { class: "legend" },
      LEGEND.map(([kind, sign, text]) =>
        h("li", null, h("span", { class: "sample sample-" + kind, "aria-hidden": "true" }, sign), text),
      ),
    ),
  );
}
