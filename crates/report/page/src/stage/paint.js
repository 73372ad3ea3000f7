/**
 * Draws the lanes of a stage. Nothing here keeps state between frames but colours:
 * a frame is what the stage says now.
 */

import { FLAG, KIND, partition } from "../data/slices.js";
import { METRICS } from "./lane.js";

const FONT = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const TITLE_FONT = "600 11.5px system-ui, sans-serif";
const RULER_FONT = "10.5px system-ui, sans-serif";
/** Narrower slices have no label. */
const LABEL_WIDTH = 26;
/** The least width of the slice of a trap. */
const TRAP_WIDTH = 5;
/** Width of a mark of a trap. */
const MARK = 8;

/**
 * @typedef {{context: CanvasRenderingContext2D, width: number, height: number, scroll: number,
 *   view: import("./viewport.js").Viewport, theme: import("../ui/theme.js").Theme,
 *   styles: import("./styles.js").Styles, letter: number}} Frame
 *   `letter`: width of a character of a label
 */

/** The width of a character of a label. @param {CanvasRenderingContext2D} context */
export function letterWidth(context) {
  context.font = FONT;
  return context.measureText("0123456789").width / 10;
}

/** @param {Frame} frame @param {number} at on the axis */
function place(frame, at) {
  return ((at - frame.view.from) / frame.view.width) * frame.width;
}

/** @param {Frame} frame */
export function paintBackground(frame) {
  const { context, theme } = frame;
  context.fillStyle = theme.colour("paper");
  context.fillRect(0, 0, frame.width, frame.height);
}

/** Lines through all lanes at the ticks. @param {Frame} frame @param {{at: number}[]} ticks */
export function paintGrid(frame, ticks) {
  const { context, theme } = frame;
  context.fillStyle = theme.colour("grid");
  for (const tick of ticks)
    context.fillRect(Math.round(place(frame, tick.at)), METRICS.ruler, 1, frame.height);
}

/** @param {Frame} frame @param {{at: number, label: string}[]} ticks */
export function paintRuler(frame, ticks) {
  const { context, theme } = frame;
  context.fillStyle = theme.colour("panel");
  context.fillRect(0, 0, frame.width, METRICS.ruler);
  context.fillStyle = theme.colour("line");
  context.fillRect(0, METRICS.ruler - 1, frame.width, 1);
  context.font = RULER_FONT;
  context.textBaseline = "middle";
  for (const tick of ticks) {
    const x = Math.round(place(frame, tick.at));
    context.fillStyle = theme.colour("line");
    context.fillRect(x, METRICS.ruler - 7, 1, 6);
    context.fillStyle = theme.colour("ink-soft");
    context.fillText(tick.label, x + 4, METRICS.ruler / 2);
  }
}

/**
 * @param {Frame} frame @param {import("./lane.js").Lane} lane
 * @param {{top: number, marks: number, rows: number, bottom: number}} box
 * @param {Set<number>|null} wanted functions that a search found
 */
export function paintLane(frame, lane, box, wanted) {
  const { context, view, scroll, theme } = frame;
  if (lane.isHidden || box.bottom - scroll < METRICS.ruler || box.top - scroll > frame.height) return;
  const index = lane.data.index(view.from, view.until);
  const firstRow = Math.max(0, Math.floor((scroll + METRICS.ruler - box.rows) / METRICS.row));
  const lastRow = Math.min(index.depths, Math.ceil((frame.height + scroll - box.rows) / METRICS.row));
  for (let depth = firstRow; depth < lastRow; depth++) {
    paintRow(frame, lane, index, depth, box.rows - scroll + depth * METRICS.row, wanted);
  }
  paintGaps(frame, lane, box);
  context.fillStyle = theme.colour("lane");
  context.fillRect(0, box.top - scroll, frame.width, METRICS.header);
  context.font = TITLE_FONT;
  context.textBaseline = "middle";
  context.fillStyle = theme.colour("ink");
  context.fillText(lane.title, 8, box.top - scroll + METRICS.header / 2 + 0.5);
  paintMarks(frame, lane, box.marks - scroll);
}

/**
 * One depth of a lane. Neighbours of the same colour that are narrower than a pixel
 * are drawn as one.
 * @param {Frame} frame @param {import("./lane.js").Lane} lane
 * @param {import("../data/slices.js").SliceIndex} index @param {number} depth @param {number} y
 * @param {Set<number>|null} wanted
 */
function paintRow(frame, lane, index, depth, y, wanted) {
  const { context, view, width, styles } = frame;
  const scale = width / view.width;
  const height = METRICS.row - 1;
  let left = 0;
  let right = -1;
  let fill = "";
  const flush = () => {
    if (right <= left) return;
    context.fillStyle = fill;
    context.fillRect(left, y, right - left, height);
  };
  index.draw(depth, view.from, view.until, view.width / width, (slice, begin, end) => {
    const style = styles.of(lane, index, slice);
    // A trap can be seen and clicked however short it is.
    const least = index.kind[slice] === KIND.trap ? TRAP_WIDTH : 0;
    const x = Math.max(-1, Math.min((begin - view.from) * scale, width - least));
    const until = Math.min(width + 1, Math.max((end - view.from) * scale, x + least));
    if (until - x < 4 && !wanted) {
      if (style.narrow !== fill || x - right > 0.6) {
        flush();
        left = x;
        fill = style.narrow;
      }
      right = Math.max(until, x + 1);
      return;
    }
    const faded = wanted !== null && !wanted.has(index.function[slice]);
    paintSlice(
      frame,
      lane,
      index,
      slice,
      style,
      { x, y, width: Math.max(1, until - x - (until - x > 3 ? 1 : 0)), height },
      faded,
    );
  });
  flush();
}

/**
 * @param {Frame} frame @param {import("./lane.js").Lane} lane
 * @param {import("../data/slices.js").SliceIndex} index @param {number} slice
 * @param {import("./styles.js").SliceStyle} style
 * @param {{x: number, y: number, width: number, height: number}} box @param {boolean} faded
 */
function paintSlice(frame, lane, index, slice, style, box, faded) {
  const { context, theme } = frame;
  if (faded) context.globalAlpha = 0.4;
  context.fillStyle = style.fill;
  context.fillRect(box.x, box.y, box.width, box.height);
  if (style.pattern && box.width > 2) {
    context.fillStyle = style.pattern;
    context.fillRect(box.x, box.y, box.width, box.height);
  }
  if (box.width > 6) paintEdges(frame, seenFlags(frame, index, slice), box);
  if (box.width >= LABEL_WIDTH) {
    const text = shortened(labelOf(lane, index, slice, style), (box.width - 8) / frame.letter);
    context.font = FONT;
    context.textBaseline = "middle";
    if (style.pattern) {
      // Stripes under letters are hard to read.
      context.fillStyle = style.fill;
      context.fillRect(box.x + 2, box.y + 2, text.length * frame.letter + 4, box.height - 4);
    }
    context.fillStyle = theme.colour("slice-ink");
    context.fillText(text, Math.max(box.x, 0) + 4, box.y + box.height / 2 + 0.5);
  }
  if (faded) context.globalAlpha = 1;
}

/**
 * The flags without those of edges outside of the window.
 * @param {Frame} frame @param {import("../data/slices.js").SliceIndex} index @param {number} slice
 */
function seenFlags(frame, index, slice) {
  let flags = index.flags[slice];
  if (index.begin[slice] < frame.view.from) flags &= ~FLAG.startNotSeen;
  if (index.end[slice] > frame.view.until) flags &= ~(FLAG.endNotSeen | FLAG.unwound);
  return flags;
}

/**
 * What of a slice was not seen or is not certain.
 * @param {Frame} frame @param {number} flags
 * @param {{x: number, y: number, width: number, height: number}} box
 */
function paintEdges(frame, flags, box) {
  if (!flags) return;
  const { context, theme } = frame;
  context.strokeStyle = theme.colour("slice-ink");
  context.lineWidth = 1;
  context.setLineDash([2, 2]);
  context.beginPath();
  if (flags & FLAG.startNotSeen) verticalLine(context, box.x + 0.5, box);
  if (flags & (FLAG.endNotSeen | FLAG.unwound)) verticalLine(context, box.x + box.width - 0.5, box);
  if (flags & (FLAG.doubtful | FLAG.inferred)) {
    context.moveTo(box.x, box.y + box.height - 0.5);
    context.lineTo(box.x + box.width, box.y + box.height - 0.5);
  }
  context.stroke();
  context.setLineDash([]);
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {{y: number, height: number}} box */
function verticalLine(context, x, box) {
  context.moveTo(x, box.y);
  context.lineTo(x, box.y + box.height);
}

/**
 * @param {import("./lane.js").Lane} lane @param {import("../data/slices.js").SliceIndex} index
 * @param {number} slice @param {import("./styles.js").SliceStyle} style
 */
function labelOf(lane, index, slice, style) {
  const name = lane.run.label(index.function[slice]);
  const doubt = index.flags[slice] & (FLAG.doubtful | FLAG.inferred) ? " ?" : "";
  const merged =
    index.kind[slice] === KIND.summary && index.merged[slice] > 1 ? " \u00d7" + index.merged[slice] : "";
  return style.prefix + name + doubt + merged;
}

/** @param {string} text @param {number} letters */
export function shortened(text, letters) {
  const room = Math.floor(letters);
  if (text.length <= room) return text;
  return room < 2 ? "" : text.slice(0, room - 1) + "\u2026";
}

/**
 * Gaps cover all depths: what was called there is not known.
 * @param {Frame} frame @param {import("./lane.js").Lane} lane @param {{marks: number, bottom: number}} box
 */
function paintGaps(frame, lane, box) {
  const { context, view, styles, scroll, width } = frame;
  const style = styles.kind("gap", "cross", "\u2715 ");
  const { end } = lane.run.data.gaps;
  lane.gaps.each(view.from, view.until, (view.width / width) * 3, (gap, at) => {
    const left = Math.max(-1, place(frame, at));
    const size = Math.max(3, Math.min(width + 1, place(frame, end[gap])) - left);
    context.globalAlpha = 0.55;
    context.fillStyle = style.fill;
    context.fillRect(left, box.marks - scroll, size, box.bottom - box.marks);
    context.globalAlpha = 1;
    if (style.pattern) context.fillStyle = style.pattern;
    context.fillRect(left, box.marks - scroll, size, box.bottom - box.marks);
  });
}

/**
 * Traps and gaps above the calls, each with its own shape.
 * @param {Frame} frame @param {import("./lane.js").Lane} lane @param {number} y
 */
function paintMarks(frame, lane, y) {
  const { context, view, theme, width } = frame;
  const cell = (view.width / width) * MARK;
  const from = view.from - cell;
  const middle = y + METRICS.marks / 2;
  const shapes = /** @type {[any, string, (x: number) => void][]} */ ([
    [
      lane.interrupts,
      "interrupt-ink",
      (x) => polygon(context, [x - 4, middle - 4, x + 4, middle - 4, x, middle + 4]),
    ],
    [
      lane.exceptions,
      "exception-ink",
      (x) => polygon(context, [x, middle - 5, x + 5, middle, x, middle + 5, x - 5, middle]),
    ],
  ]);
  for (const [marks, colour, shape] of shapes) {
    context.fillStyle = theme.colour(colour);
    marks.each(from, view.until, cell, (/** @type {number} */ _, /** @type {number} */ at) => {
      context.beginPath();
      shape(place(frame, at));
      context.fill();
    });
  }
  context.strokeStyle = theme.colour("gap-ink");
  context.lineWidth = 1.5;
  context.beginPath();
  lane.gaps.each(from, view.until, cell, (_, at) => {
    const x = place(frame, at);
    context.moveTo(x - 3, middle - 3);
    context.lineTo(x + 3, middle + 3);
    context.moveTo(x - 3, middle + 3);
    context.lineTo(x + 3, middle - 3);
  });
  context.stroke();
}

/** @param {CanvasRenderingContext2D} context @param {number[]} points */
function polygon(context, points) {
  context.moveTo(points[0], points[1]);
  for (let at = 2; at < points.length; at += 2) context.lineTo(points[at], points[at + 1]);
  context.closePath();
}

/**
 * Where a search found something, on the ruler.
 * @param {Frame} frame @param {ArrayLike<number>} positions sorted
 */
export function paintHits(frame, positions) {
  const { context, theme, view, width } = frame;
  context.fillStyle = theme.colour("hit");
  let last = -2;
  for (
    let at = partition(0, positions.length, (one) => positions[one] < view.from);
    at < positions.length;
    at++
  ) {
    const x = Math.round(place(frame, positions[at]));
    if (x > width) break;
    if (x - last < 2) continue;
    context.fillRect(x, METRICS.ruler - 4, 2, 4);
    last = x;
  }
}

/**
 * The outline of a slice.
 * @param {Frame} frame @param {{begin: number, end: number}} slice @param {number} y @param {string} colour
 * @param {number} weight
 */
export function paintOutline(frame, slice, y, colour, weight) {
  const { context, theme, width } = frame;
  const left = Math.max(-4, place(frame, slice.begin));
  const right = Math.min(width + 4, Math.max(left + 3, place(frame, slice.end)));
  context.strokeStyle = theme.colour(colour);
  context.lineWidth = weight;
  context.strokeRect(
    left + weight / 2 - 1,
    y + weight / 2 - 1,
    Math.max(2, right - left - weight + 1),
    METRICS.row - weight + 1,
  );
}
