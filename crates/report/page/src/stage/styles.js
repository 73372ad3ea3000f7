/**
 * How slices look. Kinds differ in colour and in pattern, so that they can be told
 * apart without seeing colours, and in print.
 */

import { KIND } from "../data/slices.js";
import { functionColour } from "../ui/colour.js";

/**
 * @typedef {{fill: string, narrow: string, pattern: CanvasPattern|null, prefix: string}} SliceStyle
 *   `narrow`: the colour where a pattern has no room
 */

/**
 * Draws the tile of each pattern, 8 by 8.
 * @type {Record<string, (context: CanvasRenderingContext2D) => void>}
 */
const TILES = {
  diagonal(context) {
    for (const start of [-8, 0, 8]) {
      context.moveTo(start, 8);
      context.lineTo(start + 8, 0);
    }
  },
  vertical(context) {
    context.moveTo(2, 0);
    context.lineTo(2, 8);
    context.moveTo(6, 0);
    context.lineTo(6, 8);
  },
  cross(context) {
    TILES.diagonal(context);
    for (const start of [-8, 0, 8]) {
      context.moveTo(start, 0);
      context.lineTo(start + 8, 8);
    }
  },
  dots(context) {
    context.moveTo(2, 2.5);
    context.lineTo(3, 2.5);
    context.moveTo(6, 6.5);
    context.lineTo(7, 6.5);
  },
  dashes(context) {
    context.moveTo(0, 7.5);
    context.lineTo(4, 7.5);
  },
};

export class Styles {
  /** @param {import("../ui/theme.js").Theme} theme */
  constructor(theme) {
    this.theme = theme;
    /** @type {Map<string, SliceStyle>} */
    this.kinds = new Map();
    /** @type {WeakMap<object, Map<number, SliceStyle>>} */
    this.functions = new WeakMap();
  }

  /** Forgets colours after a change of the theme. */
  clear() {
    this.kinds.clear();
    this.functions = new WeakMap();
  }

  /**
   * @param {import("./lane.js").Lane} lane @param {import("../data/slices.js").SliceIndex} index
   * @param {number} slice @returns {SliceStyle}
   */
  of(lane, index, slice) {
    switch (index.kind[slice]) {
      case KIND.trap:
        return lane.track !== null && lane.run.isInterrupt(lane.track, index, slice)
          ? this.kind("interrupt", "vertical", "\u25bc ")
          : this.kind("exception", "diagonal", "\u25c6 ");
      case KIND.gap:
        return this.kind("gap", "cross", "\u2715 ");
      case KIND.other:
        return this.kind("other", "dots", "");
      case KIND.summary:
        return this.summary(lane.run, index.function[slice]);
      default:
        return this.function(lane.run, index.function[slice], index.kind[slice] === KIND.tailCall);
    }
  }

  /**
   * @param {import("../data/run.js").Run} run @param {number} number @param {boolean} tail
   * @returns {SliceStyle}
   */
  function(run, number, tail) {
    const key = 2 * number + (tail ? 1 : 0);
    return this.remembered(run, key, () => {
      const fill = functionColour(run.label(number), this.theme.isDark);
      return { fill, narrow: fill, pattern: null, prefix: tail ? "\u21aa " : "" };
    });
  }

  /** @param {import("../data/run.js").Run} run @param {number} number @returns {SliceStyle} */
  summary(run, number) {
    return this.remembered(run, 2 ** 40 + number, () => {
      const fill = functionColour(run.label(number), this.theme.isDark);
      return {
        fill,
        narrow: fill,
        pattern: this.pattern("dashes", this.theme.colour("summary-stripe")),
        prefix: "",
      };
    });
  }

  /** @param {import("../data/run.js").Run} run @param {number} key @param {() => SliceStyle} make */
  remembered(run, key, make) {
    let known = this.functions.get(run);
    if (!known) this.functions.set(run, (known = new Map()));
    let style = known.get(key);
    if (!style) known.set(key, (style = make()));
    return style;
  }

  /** @param {string} name of a colour @param {string} tile @param {string} prefix @returns {SliceStyle} */
  kind(name, tile, prefix) {
    let style = this.kinds.get(name);
    if (!style) {
      const stripe = this.theme.colour(name + "-stripe");
      style = { fill: this.theme.colour(name), narrow: stripe, pattern: this.pattern(tile, stripe), prefix };
      this.kinds.set(name, style);
    }
    return style;
  }

  /** @param {string} tile @param {string} colour */
  pattern(tile, colour) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 8;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.beginPath();
    TILES[tile](context);
    context.stroke();
    return context.createPattern(canvas, "repeat");
  }
}
