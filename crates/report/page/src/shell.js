/**
 * The frame around the views: header, navigation, and the change from view to view.
 */

import { parseRoute, link } from "./route.js";
import { fill, h } from "./ui/dom.js";
import { branchesView } from "./views/branches.js";
import { codeView } from "./views/code.js";
import { compareView } from "./views/compare.js";
import { endingsView } from "./views/endings.js";
import { flameView } from "./views/flame.js";
import { functionsView } from "./views/functions.js";
import { interruptsView } from "./views/interrupts.js";
import { overviewView } from "./views/overview.js";
import { sourceView } from "./views/source.js";
import { timelineView } from "./views/timeline.js";
import { traceView } from "./views/trace.js";

/**
 * @typedef {{report: import("./data/document.js").Report, backend: any, theme: import("./ui/theme.js").Theme,
 *   announcer: import("./ui/announce.js").Announcer}} Context
 * @typedef {{element: HTMLElement, shown?: () => void, update?: (route: import("./route.js").Route) => void,
 *   close?: () => void, search?: HTMLInputElement, ready?: Promise<void>}} View
 *   `shown`: it is in the page; `update`: another address of the same view
 */

/** @type {[string, string, (context: Context, run: any, route: any) => View][]} */
const VIEWS = [
  ["overview", "Overview", overviewView],
  ["timeline", "Timeline", timelineView],
  ["flame", "Flame graph", flameView],
  ["functions", "Functions", functionsView],
  ["source", "Source", sourceView],
  ["code", "Code", codeView],
  ["branches", "Branches", branchesView],
  ["interrupts", "Interrupts", interruptsView],
  ["endings", "How it ended", endingsView],
  ["trace", "Trace", traceView],
];

export class Shell {
  /** @param {Context} context @param {HTMLElement} root */
  constructor(context, root) {
    this.context = context;
    this.views =
      context.report.runs.length > 1
        ? [/** @type {[string, string, any]} */ (["compare", "Compare", compareView]), ...VIEWS]
        : VIEWS;
    /** @type {View|null} */
    this.view = null;
    this.shownKey = "";
    this.main = h("main", { id: "main" });
    this.nav = h("nav", { class: "views", "aria-label": "Views" });
    this.runs = h("div", { class: "runs" });
    this.message = h("p", { class: "failure", role: "alert", hidden: true });
    context.backend.failed = (/** @type {string} */ text) => this.fail(text);
    this.busy = h("span", { class: "busy", role: "status" });
    context.backend.waiting = (/** @type {boolean} */ busy) => {
      this.busy.textContent = busy ? "Decoding\u2026" : "";
    };
    fill(
      root,
      h(
        "a",
        {
          class: "skip",
          href: "#main",
          on: { click: (/** @type {Event} */ event) => (event.preventDefault(), this.focusView()) },
        },
        "Skip to the view",
      ),
      h(
        "header",
        { class: "page" },
        h("span", { class: "brand" }, "hartrace"),
        this.runs,
        h("span", { class: "spring" }),
        this.busy,
        context.theme.control(),
      ),
      this.nav,
      this.message,
      this.main,
      context.announcer.element,
    );
    addEventListener("hashchange", () => this.show(true));
    addEventListener("keydown", (event) => this.key(event));
    this.show(false);
  }

  /** Shows what the address of the page names. @param {boolean} moved not the first time */
  show(moved) {
    const route = parseRoute(location.hash);
    const known = this.views.find(([key]) => key === route.view) ?? this.views[0];
    const run = this.context.report.runs[route.run] ?? this.context.report.runs[0];
    const key = known[0] + "/" + run.number;
    if (key === this.shownKey && this.view?.update) return this.view.update(route);
    this.shownKey = key;
    this.view?.close?.();
    const view = known[2](this.context, run, route);
    this.view = view;
    fill(this.main, view.element);
    this.main.scrollTop = 0;
    this.drawNavigation(known[0], run);
    document.title = known[1] + " \u2013 " + run.name + " \u2013 hartrace";
    view.shown?.();
    if (moved) this.focusView();
  }

  focusView() {
    this.main.querySelector("h1")?.focus({ preventScroll: true });
  }

  /** @param {string} current @param {import("./data/run.js").Run} run */
  drawNavigation(current, run) {
    fill(
      this.nav,
      h(
        "ul",
        null,
        this.views.map(([key, label]) =>
          h(
            "li",
            null,
            h("a", { href: link(key, run.number), "aria-current": key === current ? "page" : null }, label),
          ),
        ),
      ),
    );
    // In a narrow window the views are a row that scrolls. `scrollIntoView` would also move
    // where the Tab key begins.
    const shown = this.nav.querySelector("[aria-current=page]");
    if (shown) this.nav.scrollLeft = shown.offsetLeft - (this.nav.clientWidth - shown.offsetWidth) / 2;
    const { runs } = this.context.report;
    if (runs.length === 1)
      return fill(this.runs, h("span", { class: "run-name", title: run.name }, run.name));
    fill(
      this.runs,
      h(
        "fieldset",
        { class: "choices" },
        h("legend", { class: "visually-hidden" }, "Run"),
        runs.map((one) =>
          h(
            "a",
            {
              class: "run",
              href: link(current, one.number),
              "aria-current": one === run && current !== "compare" ? "true" : null,
              title: one.name,
            },
            (one.number === 0 ? "Before: " : "After: ") + one.name,
          ),
        ),
      ),
    );
  }

  /** `/` searches, as in other tools. @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key !== "/" || event.ctrlKey || event.metaKey || target.matches("input, select, textarea"))
      return;
    const field = this.view?.search ?? this.main.querySelector("input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
  }

  /** @param {string} text */
  fail(text) {
    this.message.textContent = text;
    this.message.hidden = text === "";
  }
}
