/**
 * The list beside code and source: choose a function or a file.
 */

import { matcher } from "../data/search.js";
import { h } from "../ui/dom.js";
import { Table, filterField } from "../ui/table.js";

/**
 * @param {{caption: string, names: string[], short?: (name: string) => string, href: (row: number) => string, current: number,
 *   number: {label: string, value: (row: number) => number, cell: (row: number) => any}}} options
 */
export function picker(options) {
  const { names, number } = options;
  const table = new Table({
    caption: options.caption,
    length: names.length,
    sort: "number",
    descending: true,
    columns: [
      {
        key: "name",
        label: options.caption,
        header: true,
        class: "wide",
        value: (row) => names[row],
        cell: (row) =>
          h(
            "a",
            {
              href: options.href(row),
              title: names[row],
              "aria-current": row === options.current ? "true" : null,
            },
            options.short ? options.short(names[row]) : names[row],
          ),
      },
      { key: "number", label: number.label, numeric: true, value: number.value, cell: number.cell },
    ],
    rowClass: (row) => (row === options.current ? "current" : ""),
  });
  const field = filterField("Filter " + options.caption.toLowerCase(), (text) => {
    table.show(
      text.trim()
        ? (
            (matches) => (/** @type {number} */ row) =>
              matches(names[row])
          )(matcher(text))
        : () => true,
    );
  });
  return {
    element: h("nav", { class: "picker", "aria-label": options.caption }, field, table.element),
    table,
  };
}

/**
 * Beside each other: a list and what was chosen from it.
 * @param {HTMLElement} list @param {HTMLElement} chosen
 */
export function sideBySide(list, chosen) {
  return h("div", { class: "split" }, list, chosen);
}

/**
 * Scrolls to what a link leads to, and goes on from there by keyboard.
 * @param {Table} table @param {number} row
 */
export function showTarget(table, row) {
  requestAnimationFrame(() => {
    table.reveal(row);
    table.element.focus({ preventScroll: true });
  });
}

/**
 * How hot a row is among others, on a logarithmic scale: 0 to 1.
 * @param {number} value @param {number} most
 */
export function heat(value, most) {
  return value > 0 && most > 0 ? Math.log1p(value) / Math.log1p(most) : 0;
}

/** A cell whose colour follows the heat. The number beside it says the same. @param {number} share */
export function heatCell(share) {
  return h("span", { class: "heat", "aria-hidden": "true", style: { "--heat": share.toFixed(3) } });
}
