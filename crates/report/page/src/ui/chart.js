/**
 * Small charts as SVG, each with a text that says the same.
 */

import { h, svg } from "./dom.js";
import { compact, count } from "./format.js";

const WIDTH = 360;
const HEIGHT = 120;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;

/**
 * A histogram over ranges of unequal width, drawn with bars of equal width.
 * @param {[number, number][]} buckets upper limit and count @param {(value: number) => string} label
 * @param {string} title
 */
export function histogram(buckets, label, title) {
  const most = Math.max(1, ...buckets.map(([, number]) => number));
  const step = (WIDTH - LEFT) / Math.max(1, buckets.length);
  const height = HEIGHT - TOP - BOTTOM;
  const labelEvery = Math.max(1, Math.ceil(buckets.length / 5));
  const bars = buckets.map(([upper, number], place) => {
    const size = number > 0 ? Math.max(1.5, (number / most) * height) : 0;
    return svg(
      "g",
      null,
      svg("rect", {
        class: "bar",
        x: LEFT + place * step + 0.5,
        y: TOP + height - size,
        width: Math.max(1, step - 1),
        height: size,
      }),
      svg(
        "rect",
        { class: "hover", x: LEFT + place * step, y: TOP, width: step, height },
        svg("title", null, "up to " + label(upper) + ": " + count(number)),
      ),
      place % labelEvery === labelEvery - 1 || place === buckets.length - 1
        ? svg(
            "text",
            { class: "tick", x: LEFT + (place + 1) * step, y: HEIGHT - 6, "text-anchor": "end" },
            label(upper),
          )
        : null,
    );
  });
  const described = buckets
    .filter(([, number]) => number > 0)
    .map(([upper, number]) => "up to " + label(upper) + ": " + count(number));
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, title),
    picture(title + ". " + described.join("; "), most, height, bars),
  );
}

/**
 * Amounts along the axis of a run, as an area.
 * @param {ArrayLike<number>} x where intervals of the same length begin @param {ArrayLike<number>} y @param {(value: number) => string} label of x
 * @param {string} title
 */
export function area(x, y, label, title) {
  const most = Math.max(1e-9, maximum(y));
  const height = HEIGHT - TOP - BOTTOM;
  const width = WIDTH * 2;
  const first = x.length > 0 ? x[0] : 0;
  // The last interval is as long as the others.
  const last = x.length > 1 ? 2 * x[x.length - 1] - x[x.length - 2] : first + 1;
  const place = (/** @type {number} */ value) =>
    LEFT + ((value - first) / (last - first || 1)) * (width - LEFT);
  let path = "";
  for (let at = 0; at < x.length; at++) {
    const top = (TOP + height - (y[at] / most) * height).toFixed(1);
    const right = (at + 1 < x.length ? place(x[at + 1]) : width).toFixed(1);
    path += (at === 0 ? "M" + place(x[0]).toFixed(1) + " " + (TOP + height) : "") + "V" + top + "H" + right;
  }
  const parts = [
    path && svg("path", { class: "area", d: path + "V" + (TOP + height) + "Z" }),
    svg("text", { class: "tick", x: LEFT, y: HEIGHT - 6 }, label(first)),
    svg("text", { class: "tick", x: width, y: HEIGHT - 6, "text-anchor": "end" }, label(last)),
  ];
  const text = title + ": at most " + count(most) + ", from " + label(first) + " to " + label(last);
  return h(
    "figure",
    { class: "chart wide" },
    h("figcaption", null, title),
    picture(text, most, height, parts, width),
  );
}

/**
 * The frame that charts share.
 * @param {string} text @param {number} most @param {number} height @param {any[]} parts
 * @param {number} [width]
 */
function picture(text, most, height, parts, width = WIDTH) {
  return svg(
    "svg",
    { role: "img", "aria-label": text, viewBox: `0 0 ${width} ${HEIGHT}` },
    svg("line", { class: "rule", x1: LEFT, x2: width, y1: TOP, y2: TOP }),
    svg("line", { class: "rule", x1: LEFT, x2: width, y1: TOP + height, y2: TOP + height }),
    svg("text", { class: "tick", x: LEFT - 6, y: TOP + 9, "text-anchor": "end" }, compact(most)),
    svg("text", { class: "tick", x: LEFT - 6, y: TOP + height, "text-anchor": "end" }, "0"),
    parts,
  );
}

/** @param {ArrayLike<number>} values */
function maximum(values) {
  let most = 0;
  for (let at = 0; at < values.length; at++) most = Math.max(most, values[at]);
  return most;
}

/** A bar for a share of a whole, beside a number. @param {number} share 0 to 1 */
export function bar(share) {
  return h(
    "span",
    { class: "share", "aria-hidden": "true" },
    h("span", { style: { width: (100 * Math.min(1, Math.max(0, share || 0))).toFixed(2) + "%" } }),
  );
}
