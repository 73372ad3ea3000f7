/**
 * Light and dark. The style sheet holds every colour; canvases read them from there.
 * Without a choice of the reader the page follows the system.
 */

import { h } from "./dom.js";

const CHOICES = ["system", "light", "dark"];
const KEY = "hartrace-theme";

/** A choice kept from the last visit. Pages opened from disk may have no storage. */
function remembered() {
  try {
    const choice = localStorage.getItem(KEY);
    return choice && CHOICES.includes(choice) ? choice : "system";
  } catch {
    return "system";
  }
}

/** @param {string} choice */
function remember(choice) {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // The choice then lasts as long as the page.
  }
}

export class Theme {
  constructor() {
    this.choice = remembered();
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** @type {Map<string, string>} */
    this.colours = new Map();
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  get isDark() {
    return this.choice === "dark" || (this.choice === "system" && this.system.matches);
  }

  apply() {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    this.colours.clear();
    for (const listener of this.listeners) listener();
  }

  /** The value of a custom property of the style sheet. @param {string} name without dashes */
  colour(name) {
    let value = this.colours.get(name);
    if (value === undefined) {
      value = getComputedStyle(document.documentElement)
        .getPropertyValue("--" + name)
        .trim();
      this.colours.set(name, value);
    }
    return value;
  }

  /**
   * Runs `listener` when colours change, until the returned function is called.
   * @param {() => void} listener
   */
  onChange(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The control of the page's header. */
  control() {
    const select = h(
      "select",
      { id: "theme", on: { change: () => this.choose(select.value) } },
      CHOICES.map((choice) =>
        h(
          "option",
          { value: choice, selected: choice === this.choice },
          choice === "system" ? "System" : choice === "light" ? "Light" : "Dark",
        ),
      ),
    );
    return h("label", { class: "theme" }, "Theme ", select);
  }

  /** @param {string} choice */
  choose(choice) {
    this.choice = choice;
    remember(choice);
    this.apply();
  }
}
