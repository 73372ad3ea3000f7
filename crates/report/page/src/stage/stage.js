/**
 * The canvas with lanes of slices that timeline, flame graph and comparison share:
 * layout, window, selection, hovering, highlighting. Views add what is specific.
 */

import { h, oncePerFrame } from "../ui/dom.js";
import { listen } from "./input.js";
import { METRICS, layoutLanes } from "./lane.js";
import { Minimap } from "./minimap.js";
import {
  letterWidth,
  paintBackground,
  paintGrid,
  paintHits,
  paintLane,
  paintOutline,
  paintRuler,
} from "./paint.js";
import { Styles } from "./styles.js";
import { Viewport } from "./viewport.js";

/** Pixels between ticks of the ruler, at least. */
const TICK_SPACE = 110;
/** How many pixels beside a narrow slice still hit it. */
const TOLERANCE = 4;

/**
 * @typedef {{lane: number, begin: number, end: number, depth: number, function: number, turn: number, kind: number,
 *   flags: number, merged: number, at: number}} Selection a copy: the index it comes from may be replaced;
 *   `at` is the position in it that is looked at
 * @typedef {{lanes: import("./lane.js").Lane[], axis: import("../data/axis.js").Axis,
 *   theme: import("../ui/theme.js").Theme, label: string, minimum?: number, minimap?: boolean, clickZooms?: boolean,
 *   describe: (selection: Selection) => string, onSelect?: (selection: Selection|null) => void,
 *   onWindow?: () => void, onData?: () => void}} StageOptions `onData`: more is known about the same
 */

export class Stage {
  /** @param {StageOptions} options */
  constructor(options) {
    this.options = options;
    this.lanes = options.lanes;
    this.axis = options.axis;
    this.theme = options.theme;
    this.styles = new Styles(options.theme);
    this.view = new Viewport(options.axis.from, options.axis.until, options.minimum ?? 10);
    this.layout = layoutLanes(this.lanes);
    /** @type {Selection|null} */
    this.selection = null;
    /** @type {Selection|null} */
    this.hovered = null;
    /**
     * What a search found, by lane; null: no search.
     * @type {((lane: import("./lane.js").Lane) => Set<number>)|null}
     */
    this.wanted = null;
    /** @type {ArrayLike<number>} */
    this.hits = [];
    this.width = 0;
    this.height = 0;
    this.letter = 0;
    this.canvas = h("canvas", {
      class: "stage-canvas",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "chart of calls",
      "aria-label": options.label,
    });
    this.sizer = h("div", { class: "stage-sizer" }, this.canvas);
    this.scroller = h("div", { class: "stage-scroller" }, this.sizer);
    this.tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.minimap = options.minimap === false ? null : new Minimap(this);
    this.element = h("div", { class: "stage" }, this.minimap?.canvas, this.scroller, this.tip);
    this.draw = oncePerFrame(() => this.paint());
    /** Ends what outlives the element. */
    this.close = () => {};
    this.attach();
  }

  attach() {
    listen(this, this.canvas);
    this.scroller.addEventListener("scroll", this.draw);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.scroller);
    const forget = this.theme.onChange(() => {
      this.styles.clear();
      this.minimap?.refresh();
      this.draw();
    });
    for (const lane of this.lanes) {
      lane.data.changed = () => this.dataChanged();
    }
    this.close = () => {
      observer.disconnect();
      forget();
    };
  }

  /** @param {boolean[]} shown by lane */
  showLanes(shown) {
    this.lanes.forEach((lane, number) => {
      lane.isHidden = !shown[number];
    });
    if (this.selection && this.lanes[this.selection.lane].isHidden) this.select(null);
    this.layout = layoutLanes(this.lanes);
    this.minimap?.refresh();
    this.resize();
    this.options.onWindow?.();
  }

  /** A server has sent slices. */
  dataChanged() {
    this.layout = layoutLanes(this.lanes);
    this.resize();
    this.minimap?.refresh();
    const { selection } = this;
    const slice = selection ? this.index(selection.lane).find(selection) : -1;
    if (selection && slice >= 0) this.selection = this.selectionOf(selection.lane, slice, selection.at);
    this.options.onData?.();
    this.options.onWindow?.();
  }

  resize() {
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.sizer.style.setProperty("height", Math.max(this.layout.height, this.height) + "px");
    this.canvas.style.setProperty("height", this.height + "px");
    this.minimap?.draw();
    this.draw();
  }

  paint() {
    const { canvas, width, height, view } = this;
    if (width === 0 || height === 0) return;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d", { alpha: false });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.letter ||= letterWidth(context);
    const scroll = this.scroller.scrollTop;
    const frame = {
      context,
      width,
      height,
      scroll,
      view,
      theme: this.theme,
      styles: this.styles,
      letter: this.letter,
    };
    const ticks = this.axis.ticks(view.from, view.until, (view.width / width) * TICK_SPACE);
    paintBackground(frame);
    paintGrid(frame, ticks);
    this.lanes.forEach((lane, number) => {
      if (!lane.isHidden) lane.data.want(view.from, view.until, Math.round(width));
      paintLane(frame, lane, this.layout.lanes[number], this.wanted && this.wanted(lane));
    });
    if (this.hovered) paintOutline(frame, this.hovered, this.rowTop(this.hovered) - scroll, "ink", 1);
    if (this.selection)
      paintOutline(frame, this.selection, this.rowTop(this.selection) - scroll, "select", 2.5);
    paintRuler(frame, ticks);
    if (this.wanted) paintHits(frame, this.hits);
  }

  /** @param {{lane: number, depth: number}} slice */
  rowTop(slice) {
    return this.layout.lanes[slice.lane].rows + slice.depth * METRICS.row;
  }

  /** The index that is drawn for a lane now. @param {number} lane */
  index(lane) {
    return this.lanes[lane].data.index(this.view.from, this.view.until);
  }

  /** @param {number} x in pixels */
  position(x) {
    return this.view.from + (x / this.width) * this.view.width;
  }

  /** Where zooming by keys holds still: the selection if it is seen, or the middle. */
  focusX() {
    const { selection, view } = this;
    if (!selection) return this.width / 2;
    const middle = (Math.max(selection.begin, view.from) + Math.min(selection.end, view.until)) / 2;
    if (middle < view.from || middle > view.until) return this.width / 2;
    return ((middle - view.from) / view.width) * this.width;
  }

  // Window.

  moved() {
    this.draw();
    this.minimap?.draw();
    this.options.onWindow?.();
  }

  /** @param {number} from @param {number} until */
  show(from, until) {
    this.view.set(from, until);
    this.moved();
  }

  showAll() {
    this.view.reset();
    this.moved();
  }

  /** @param {number} factor @param {number} x in pixels */
  zoomAt(factor, x) {
    this.view.zoom(factor, this.position(x));
    this.moved();
  }

  /** @param {number} x @param {number} y in pixels */
  panBy(x, y) {
    if (x) this.view.pan((x / this.width) * this.view.width);
    if (y) this.scroller.scrollTop += y;
    this.hoverAt(-1, -1);
    this.moved();
  }

  zoomToSelection() {
    if (!this.selection) return;
    this.view.frame(this.selection.begin, this.selection.end);
    this.moved();
  }

  // Selection.

  /**
   * @param {number} lane @param {number} slice @param {number} [at] a position in it, its begin without one
   * @returns {Selection}
   */
  selectionOf(lane, slice, at = -Infinity) {
    const index = this.index(lane);
    const begin = index.begin[slice];
    const end = index.end[slice];
    return {
      lane,
      begin,
      end,
      at: Math.max(begin, Math.min(Math.floor(at), end - 1)),
      depth: index.depth[slice],
      function: index.function[slice],
      turn: index.twins(slice).indexOf(slice),
      kind: index.kind[slice],
      flags: index.flags[slice],
      merged: index.merged[slice],
    };
  }

  /** @param {Selection|null} selection @param {boolean} [reveal] */
  select(selection, reveal = false) {
    this.selection = selection;
    if (selection && reveal) this.reveal(selection);
    this.draw();
    this.options.onSelect?.(selection);
  }

  /** @param {Selection} selection */
  reveal(selection) {
    this.view.reveal(selection.begin, selection.end);
    const top = this.rowTop(selection);
    const { scroller } = this;
    if (top - METRICS.ruler < scroller.scrollTop) scroller.scrollTop = top - METRICS.ruler - METRICS.header;
    else if (top + METRICS.row > scroller.scrollTop + this.height)
      scroller.scrollTop = top + 3 * METRICS.row - this.height;
    this.moved();
  }

  /** The slice under a point, null: none. @param {number} x @param {number} y @returns {Selection|null} */
  pick(x, y) {
    if (x < 0 || y < METRICS.ruler) return null;
    const down = y + this.scroller.scrollTop;
    const lane = this.layout.lanes.findIndex((box) => down >= box.rows && down < box.bottom);
    if (lane < 0) return null;
    const depth = Math.floor((down - this.layout.lanes[lane].rows) / METRICS.row);
    const slice = this.index(lane).near(depth, this.position(x), (this.view.width / this.width) * TOLERANCE);
    return slice < 0 ? null : this.selectionOf(lane, slice, this.position(x));
  }

  /** @param {number} x @param {number} y */
  selectAt(x, y) {
    this.select(this.pick(x, y));
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    this.canvas.focus({ preventScroll: true });
    this.selectAt(x, y);
    if (this.options.clickZooms && this.selection) this.zoomToSelection();
  }

  /** @param {number} x @param {number} y outside: nothing is hovered */
  hoverAt(x, y) {
    const hovered = this.pick(x, y);
    this.hovered = hovered;
    this.tip.hidden = !hovered;
    this.draw();
    if (!hovered) return;
    this.tip.textContent = this.options.describe(hovered);
    const left = Math.min(x + 14, this.width - this.tip.offsetWidth - 4);
    const above = y + 40 + this.tip.offsetHeight > this.height;
    this.tip.style.setProperty("left", Math.max(0, left) + "px");
    this.tip.style.setProperty(
      "top",
      this.scroller.offsetTop + (above ? y - this.tip.offsetHeight - 8 : y + 18) + "px",
    );
  }

  /** Selects the first slice that is seen, for the keyboard. */
  selectFirst() {
    for (let lane = 0; lane < this.lanes.length; lane++) {
      const index = this.index(lane);
      if (index.size === 0 || this.lanes[lane].isHidden) continue;
      const place = index.firstEndingAfter(0, this.view.from);
      const { slices } = index.rows[0];
      if (place < slices.length) return this.select(this.selectionOf(lane, slices[place]), true);
    }
  }

  /** Moves the selection. @param {"parent"|"child"|"next"|"previous"} move */
  walk(move) {
    const { selection } = this;
    if (!selection) return;
    const index = this.index(selection.lane);
    const slice = index.find(selection);
    if (slice < 0) return this.selectFirst();
    const steps = {
      parent: () => index.parent(slice),
      // Preferably one that is seen.
      child: () => {
        const seen = index.firstChild(slice, this.view.from);
        return seen >= 0 ? seen : index.firstChild(slice);
      },
      next: () => index.sibling(slice, 1),
      previous: () => index.sibling(slice, -1),
    };
    const found = steps[move]();
    // A caller is looked at where its callee is, and so is a call that began before the window.
    const isAround =
      found >= 0 && (move === "parent" || (move === "child" && index.begin[found] < this.view.from));
    const at = isAround ? selection.at : undefined;
    if (found >= 0) this.select(this.selectionOf(selection.lane, found, at), true);
    else this.walkToLane(move, selection.lane);
  }

  /**
   * Above the outermost call is the lane above, below the innermost the lane below.
   * @param {string} move @param {number} lane
   */
  walkToLane(move, lane) {
    const step = move === "parent" ? -1 : move === "child" ? 1 : 0;
    let other = lane + step;
    while (this.lanes[other]?.isHidden) other += step;
    if (step === 0 || !this.lanes[other] || !this.selection) return;
    const slice = this.index(other).near(0, this.selection.begin, Infinity);
    if (slice >= 0) this.select(this.selectionOf(other, slice), true);
  }

  /**
   * Fades what is not wanted.
   * @param {((lane: import("./lane.js").Lane) => Set<number>)|null} wanted
   * @param {ArrayLike<number>} hits positions, sorted
   */
  highlight(wanted, hits) {
    this.wanted = wanted;
    this.hits = hits;
    this.draw();
  }
}
