/**
 * Tables of any length: sorted by a click on a heading, filtered, and drawn only where
 * they are seen. Rows have one height, so that the position of each follows from its
 * number; blank rows before and after keep the length of the whole.
 */

import { append, fill, h, oncePerFrame } from "./dom.js";
import { count } from "./format.js";

/** Tables up to this length are drawn whole. */
const WHOLE = 300;
const ROW_HEIGHT = 22;
/** Rows that may not fit into a window. */
const LONG = 15;
/** Rows drawn beyond each border of what is seen. */
const MARGIN = 20;
/** Rows of a long table that are printed. */
const PRINTED = 100;

/**
 * @typedef {{key: string, label: string, title?: string, numeric?: boolean, header?: boolean, quiet?: boolean, class?: string,
 *   value?: (row: number) => any, cell: (row: number) => any}} Column
 *   `value`: what to sort by, absent: the column cannot be sorted; `header`: names the row;
 *   `quiet`: its own heading is for screen readers only
 * @typedef {{caption: string, columns: Column[], length: number, sort?: string, descending?: boolean,
 *   empty?: string, rowClass?: (row: number) => string, onSort?: (key: string, descending: boolean) => void}} TableOptions
 */

export class Table {
  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    this.sort = options.sort ?? null;
    this.descending = options.descending ?? false;
    /** @type {(row: number) => boolean} */
    this.filter = () => true;
    this.rows = Array.from({ length: options.length }, (_, row) => row);
    this.drawn = -1;
    /** A row that a link leads to, -1: none. */
    this.target = -1;
    this.body = h("tbody", null);
    this.head = h(
      "thead",
      null,
      h(
        "tr",
        { "aria-rowindex": 1 },
        options.columns.map((column) => this.heading(column)),
      ),
    );
    this.table = h(
      "table",
      { class: "data" },
      h("caption", { class: "visually-hidden" }, options.caption),
      this.head,
      this.body,
    );
    this.element = h(
      "div",
      { class: "table", role: "region", "aria-label": options.caption, tabindex: 0 },
      this.table,
    );
    this.element.addEventListener(
      "scroll",
      oncePerFrame(() => this.draw()),
    );
    this.arrange();
  }

  /** @param {Column} column */
  heading(column) {
    const attributes = {
      scope: "col",
      class: column.numeric ? "number" : null,
      title: column.title,
      "data-key": column.key,
    };
    if (!column.value)
      return h("th", attributes, h("span", { class: column.quiet ? "visually-hidden" : null }, column.label));
    const button = h("button", { type: "button", on: { click: () => this.sortBy(column) } }, column.label);
    return h("th", { ...attributes, "aria-sort": "none" }, button);
  }

  /** @param {Column} column */
  sortBy(column) {
    // Numbers are looked at from the largest, names from the first.
    this.descending = this.sort === column.key ? !this.descending : Boolean(column.numeric);
    this.sort = column.key;
    this.arrange();
    this.options.onSort?.(column.key, this.descending);
  }

  /** Shows only the rows that pass. @param {(row: number) => boolean} filter */
  show(filter) {
    this.filter = filter;
    this.arrange();
  }

  arrange() {
    const column = this.options.columns.find((one) => one.key === this.sort);
    const rows = [];
    for (let row = 0; row < this.options.length; row++) if (this.filter(row)) rows.push(row);
    if (column?.value) sortRows(rows, column.value, this.descending);
    this.rows = rows;
    for (const cell of this.head.querySelectorAll("th[aria-sort]")) {
      const active = cell.dataset.key === this.sort;
      cell.setAttribute("aria-sort", !active ? "none" : this.descending ? "descending" : "ascending");
    }
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    // A bar beside many rows takes room from the last column in some browsers.
    this.element.classList.toggle("long", rows.length > LONG);
    this.element.scrollTop = 0;
    this.redraw();
  }

  /** Draws again although the same rows are seen. */
  redraw() {
    this.drawn = -1;
    this.draw();
  }

  draw() {
    const { rows } = this;
    if (rows.length <= WHOLE) {
      if (this.drawn !== 0) this.drawRange(0, rows.length);
      this.drawn = 0;
      return;
    }
    const seen = Math.ceil((this.element.clientHeight || 600) / ROW_HEIGHT);
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW_HEIGHT) - MARGIN);
    // Drawing in steps keeps scrolling by a few pixels free.
    const start = first - (first % 10);
    if (start === this.drawn) return;
    this.drawn = start;
    this.drawRange(start, Math.min(rows.length, start + seen + 2 * MARGIN + 10));
  }

  /** @param {number} from @param {number} until */
  drawRange(from, until) {
    const { rows, options } = this;
    const parts = [];
    if (from > 0) parts.push(blank(from));
    for (let place = from; place < until; place++) parts.push(this.row(rows[place], place));
    if (until < rows.length) parts.push(blank(rows.length - until));
    if (rows.length === 0) {
      parts.push(
        h(
          "tr",
          null,
          h("td", { colspan: options.columns.length, class: "empty" }, options.empty ?? "Nothing to show."),
        ),
      );
    }
    fill(this.body, parts);
  }

  /** @param {number} row @param {number} place */
  row(row, place) {
    const { columns, rowClass } = this.options;
    const classes = (rowClass ? rowClass(row) : "") + (row === this.target ? " target" : "");
    const element = h("tr", { "aria-rowindex": place + 2, class: classes || null, "data-row": row });
    for (const column of columns) {
      const cell = h(column.header ? "th" : "td", {
        scope: column.header ? "row" : null,
        class: (column.numeric ? "number " : "") + (column.class ?? "") || null,
      });
      append(cell, column.cell(row));
      element.appendChild(cell);
    }
    return element;
  }

  /** Scrolls to a row and marks it. @param {number} row */
  reveal(row) {
    const place = this.rows.indexOf(row);
    if (place < 0) return;
    this.target = row;
    this.element.scrollTop = Math.max(0, place * ROW_HEIGHT - this.element.clientHeight / 3);
    this.redraw();
  }

  /** A copy of the first rows for paper, with a line that counts the rest. @param {number} [limit] */
  printed(limit = PRINTED) {
    const shown = this.rows.slice(0, limit);
    const table = h(
      "table",
      { class: "data" },
      h("caption", null, this.options.caption),
      this.head.cloneNode(true),
      h(
        "tbody",
        null,
        shown.map((row, place) => this.row(row, place)),
      ),
    );
    const rest = this.rows.length - shown.length;
    return h(
      "div",
      { class: "table" },
      table,
      rest > 0 && h("p", null, count(rest) + " further rows are not printed."),
    );
  }
}

/** @param {number} rows */
function blank(rows) {
  return h(
    "tr",
    { class: "blank", "aria-hidden": "true" },
    h("td", { style: { height: rows * ROW_HEIGHT + "px" } }),
  );
}

/**
 * Sorts by a value; rows with the same value keep their order.
 * @param {number[]} rows @param {(row: number) => any} value @param {boolean} descending
 */
function sortRows(rows, value, descending) {
  const values = new Map(rows.map((row) => [row, value(row)]));
  const sign = descending ? -1 : 1;
  rows.sort((a, b) => {
    const x = values.get(a);
    const y = values.get(b);
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return order ? sign * order : a - b;
  });
}

/**
 * A text field that filters a table.
 * @param {string} label @param {(text: string) => void} apply
 */
export function filterField(label, apply) {
  const input = h("input", {
    type: "search",
    class: "filter",
    "aria-label": label,
    placeholder: label,
    spellcheck: "false",
    on: { input: () => apply(input.value) },
  });
  return input;
}
