/**
 * A search field with steps to the next and the previous hit.
 */

import { h, settle } from "./dom.js";

export class SearchBar {
  /**
   * @param {string} label
   * @param {{changed: (query: string) => void, step: (direction: 1|-1) => void}} actions
   */
  constructor(label, actions) {
    const changed = settle(120, () => this.changed());
    this.actions = actions;
    this.query = "";
    this.input = h("input", {
      type: "search",
      class: "search",
      placeholder: label,
      "aria-label": label,
      spellcheck: "false",
      on: { input: changed, keydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
    });
    this.status = h("span", { class: "search-status", role: "status" });
    this.element = h(
      "div",
      { class: "searchbar", role: "search" },
      this.input,
      h(
        "button",
        {
          type: "button",
          title: "Previous hit (Shift+Enter)",
          "aria-label": "Previous hit",
          on: { click: () => this.step(-1) },
        },
        "\u2191",
      ),
      h(
        "button",
        {
          type: "button",
          title: "Next hit (Enter)",
          "aria-label": "Next hit",
          on: { click: () => this.step(1) },
        },
        "\u2193",
      ),
      this.status,
    );
  }

  changed() {
    if (this.input.value === this.query) return;
    this.query = this.input.value;
    this.actions.changed(this.query);
  }

  /** @param {1|-1} direction */
  step(direction) {
    this.changed();
    this.actions.step(direction);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Enter") this.step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape" && this.input.value) this.set("");
    else return;
    event.preventDefault();
  }

  /** @param {string} query */
  set(query) {
    this.input.value = query;
    this.changed();
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
  }
}
