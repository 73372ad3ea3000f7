/**
 * Links between the views, and the small cells that several tables share.
 */

import { link } from "../route.js";
import { bar } from "../ui/chart.js";
import { functionColour } from "../ui/colour.js";
import { h } from "../ui/dom.js";
import { count, percent } from "../ui/format.js";

/** @typedef {import("../data/run.js").Run} Run */

/** A square in the colour that a function has everywhere. @param {string} name */
export function swatch(name) {
  return h("span", {
    class: "swatch",
    "aria-hidden": "true",
    style: { "--light": functionColour(name, false), "--dark": functionColour(name, true) },
  });
}

/** A function, linked to its instructions. @param {Run} run @param {number} number */
export function functionLink(run, number) {
  const name = run.functionName(number);
  if (number < 0) return h("span", { class: "unknown" }, name);
  return h("a", { class: "name", href: link("code", run.number, [number]), title: name }, swatch(name), name);
}

/**
 * A place in the source, linked if the file is known.
 * @param {Run} run @param {number} file @param {number} line
 */
export function sourceLink(run, file, line) {
  if (!(file >= 0)) return null;
  return h(
    "a",
    {
      class: "place",
      href: link("source", run.number, [file], { line: line > 0 ? line : null }),
      title: run.fileName(file),
    },
    run.place(file, line),
  );
}

/**
 * An address, linked to its instruction.
 * @param {Run} run @param {number} number of the function, -1: unknown @param {string|null} address
 */
export function addressLink(run, number, address) {
  if (!address) return null;
  if (number < 0) return h("span", { class: "mono" }, address);
  return h("a", { class: "mono", href: link("code", run.number, [number], { address }) }, address);
}

/**
 * The address of a part of the timeline, with some room around it.
 * @param {Run} run @param {number} track @param {number} at @param {number} length
 * @param {{trap?: number|null, depth?: number|null}} [which] the number of the trap that is
 *   there, or the depth of the slice
 */
export function timelineHref(run, track, at, length, which = {}) {
  const room = Math.max(length, run.axis.isTime ? 20 : 50);
  return link("timeline", run.number, [], {
    from: Math.floor(at - room),
    until: Math.ceil(at + length + room),
    track,
    at,
    trap: which.trap ?? null,
    depth: which.depth ?? null,
  });
}

/** @param {Run} run @param {number} track @param {number} at @param {number} length @param {any} [text] */
export function timelineLink(run, track, at, length, text) {
  return h("a", { href: timelineHref(run, track, at, length) }, text ?? run.axis.position(at));
}

/** A link to a trap in the timeline. @param {Run} run @param {number} trap its number @param {any} [text] */
export function trapLink(run, trap, text) {
  const { traps } = run.data;
  const href = timelineHref(run, traps.track[trap], traps.at[trap], run.trapLength(trap) ?? 0, { trap });
  return h("a", { href }, text ?? run.axis.position(traps.at[trap]));
}

/**
 * A link to one of the traps that took longest: others may begin at the same position.
 * @param {Run} run @param {{track: number, at: number, duration: number, away?: number, depth?: number, trap?: number|null}} worst
 */
export function worstLink(run, worst) {
  const length = worst.duration + (worst.away ?? 0);
  const href = timelineHref(run, worst.track, worst.at, length, worst);
  return h("a", { href }, run.axis.shortSpan(worst.duration));
}

/** The function that a trap interrupted; code without a symbol by its address. @param {Run} run @param {number} trap */
export function interruptedLink(run, trap) {
  const { traps } = run.data;
  if (traps.function[trap] >= 0 || !traps.epc[trap]) return functionLink(run, traps.function[trap]);
  return h("span", { class: "mono", title: "The program has no symbol for this address." }, traps.epc[trap]);
}

/** A number with its share of a whole. @param {number} value @param {number} whole @param {string} [text] */
export function amount(value, whole, text) {
  return [
    bar(whole > 0 ? value / whole : 0),
    h("span", { class: "amount" }, text ?? count(value)),
    h("span", { class: "percent" }, percent(value, whole)),
  ];
}

/** A heading of a view. @param {string} title @param {any} [explanation] */
export function heading(title, explanation) {
  return [h("h1", { tabindex: -1 }, title), explanation ? h("p", { class: "lead" }, explanation) : null];
}
