/**
 * Tells screen readers what changed where nothing else does: a selection on a canvas,
 * the number of hits.
 */

import { h } from "./dom.js";

export class Announcer {
  constructor() {
    this.element = h("div", {
      class: "visually-hidden",
      role: "status",
      "aria-live": "polite",
      id: "announcer",
    });
    this.timer = 0;
  }

  /** @param {string} text the last one within a moment is spoken */
  say(text) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.element.textContent = text;
    }, 120);
  }
}
