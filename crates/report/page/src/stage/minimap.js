/**
 * The whole axis in a strip above the lanes, with the part that is seen. Dragging moves
 * that part; its edges change its width; dragging elsewhere selects a new one. Keys of
 * the stage do the same, so the strip is hidden from screen readers.
 */

import { h, oncePerFrame } from "../ui/dom.js";

const HEIGHT = 44;
/** Pixels around an edge that count as the edge. */
const EDGE = 6;
/** Depths of a lane that are drawn. */
const DEPTHS = 6;

export class Minimap {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.canvas = h("canvas", { class: "minimap", "aria-hidden": "true" });
    /** What does not change when the window moves. */
    this.picture = h("canvas", null);
    this.pictureKey = "";
    this.draw = oncePerFrame(() => this.paint());
    this.listen();
  }

  /** Draws the lanes again. */
  refresh() {
    this.pictureKey = "";
    this.draw();
  }

  paint() {
    const { canvas, stage } = this;
    const width = canvas.clientWidth;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    this.repaintPicture(width, ratio);
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(HEIGHT * ratio)) canvas.height = Math.round(HEIGHT * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { view, theme } = stage;
    const left = this.place(view.from);
    const right = Math.max(left + 2, this.place(view.until));
    context.fillStyle = theme.colour("shade");
    context.fillRect(0, 0, left, HEIGHT);
    context.fillRect(right, 0, width - right, HEIGHT);
    context.strokeStyle = theme.colour("accent");
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(1, right - left - 1.5), HEIGHT - 1.5);
    context.fillStyle = theme.colour("accent");
    for (const x of [left, right]) context.fillRect(x - 1.5, HEIGHT / 2 - 8, 3, 16);
  }

  /** @param {number} width @param {number} ratio */
  repaintPicture(width, ratio) {
    const key = width + "/" + ratio;
    if (key === this.pictureKey) return;
    this.pictureKey = key;
    const { picture, stage } = this;
    picture.width = Math.round(width * ratio);
    picture.height = Math.round(HEIGHT * ratio);
    const context = picture.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = stage.theme.colour("paper");
    context.fillRect(0, 0, width, HEIGHT);
    const lanes = stage.lanes.filter((lane) => !lane.isHidden);
    const each = (HEIGHT - 4) / Math.max(1, lanes.length);
    lanes.forEach((lane, number) =>
      this.paintLane(context, lane, 2 + number * each, Math.max(0.5, each - 1)),
    );
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {import("./lane.js").Lane} lane @param {number} top
   * @param {number} height
   */
  paintLane(context, lane, top, height) {
    const { view, styles, theme } = this.stage;
    const index = lane.data.index(view.low, view.high);
    const depths = Math.min(DEPTHS, index.depths, Math.max(1, Math.floor(height / 2)));
    const row = height / Math.max(1, depths);
    const pixel = (view.high - view.low) / this.canvas.clientWidth;
    for (let depth = 0; depth < depths; depth++) {
      index.draw(depth, view.low, view.high, pixel, (slice, begin, end) => {
        context.fillStyle = styles.of(lane, index, slice).narrow;
        const x = this.place(begin);
        context.fillRect(x, top + depth * row, Math.max(1, this.place(end) - x), Math.max(1, row - 0.5));
      });
    }
    for (const [marks, colour] of /** @type {[any, string][]} */ ([
      [lane.interrupts, "interrupt-ink"],
      [lane.exceptions, "exception-ink"],
      [lane.gaps, "gap-ink"],
    ])) {
      context.fillStyle = theme.colour(colour);
      marks.each(view.low, view.high, pixel * 3, (/** @type {number} */ _, /** @type {number} */ at) =>
        context.fillRect(this.place(at), top + height - 4, 2, 4),
      );
    }
  }

  /** @param {number} at */
  place(at) {
    const { view } = this.stage;
    return ((at - view.low) / (view.high - view.low)) * this.canvas.clientWidth;
  }

  /** @param {number} x */
  position(x) {
    const { view } = this.stage;
    return view.low + (x / this.canvas.clientWidth) * (view.high - view.low);
  }

  listen() {
    const { canvas, stage } = this;
    /** @type {((x: number) => void)|null} */
    let drag = null;
    canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      canvas.setPointerCapture(event.pointerId);
      drag = this.grip(event.offsetX);
    });
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (drag) drag(event.offsetX);
      else canvas.style.cursor = this.isEdge(event.offsetX) ? "ew-resize" : "";
    });
    const end = () => {
      drag = null;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", () => stage.showAll());
  }

  /** @param {number} x */
  isEdge(x) {
    const { view } = this.stage;
    return Math.abs(x - this.place(view.from)) < EDGE || Math.abs(x - this.place(view.until)) < EDGE;
  }

  /** What dragging from here does. @param {number} x @returns {(x: number) => void} */
  grip(x) {
    const { stage } = this;
    const { from, until } = stage.view;
    const start = this.position(x);
    if (Math.abs(x - this.place(from)) < EDGE && x < EDGE + this.place(until)) {
      return (now) => stage.show(Math.min(this.position(now), until), until);
    }
    if (Math.abs(x - this.place(until)) < EDGE)
      return (now) => stage.show(from, Math.max(this.position(now), from));
    if (start > from && start < until && !stage.view.isWhole) {
      return (now) => stage.show(from + this.position(now) - start, until + this.position(now) - start);
    }
    return (now) => {
      const at = this.position(now);
      stage.show(Math.min(start, at), Math.max(start, at));
    };
  }
}
