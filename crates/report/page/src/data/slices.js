/**
 * The calls of one track, ready to be drawn and walked. Slices of one depth do not
 * overlap, so each depth is a row sorted by position, and every question is a binary
 * search in a row: drawing costs by pixels, not by slices.
 */

/** Kinds of slices, as the document numbers them. */
export const KIND = Object.freeze({ call: 0, tailCall: 1, trap: 2, gap: 3, other: 4, summary: 5 });

/** Bits of `flags`. */
export const FLAG = Object.freeze({ startNotSeen: 1, endNotSeen: 2, doubtful: 4, inferred: 8, unwound: 16 });

/**
 * @typedef {{begin: ArrayLike<number>, end: ArrayLike<number>, depth: ArrayLike<number>,
 *   function: ArrayLike<number>, kind?: ArrayLike<number>, flags?: ArrayLike<number>,
 *   merged?: ArrayLike<number>}} SliceColumns
 * @typedef {{begin: number, depth: number, function?: number, turn?: number}} SliceKey names a slice
 *   across several answers of a server; `turn`: its place among those that begin there
 */

/** @type {SliceColumns} */
const NONE = { begin: [], end: [], depth: [], function: [] };

export class SliceIndex {
  /** @param {SliceColumns|null|undefined} columns */
  constructor(columns) {
    const { begin, end, depth, function: functions, kind, flags, merged } = columns ?? NONE;
    this.size = begin.length;
    this.begin = new Float64Array(begin);
    this.end = new Float64Array(end);
    this.depth = new Uint16Array(depth);
    this.function = new Int32Array(functions);
    this.kind = kind ? new Uint8Array(kind) : new Uint8Array(begin.length);
    this.flags = flags ? new Uint8Array(flags) : new Uint8Array(begin.length);
    this.merged = merged ? new Uint32Array(merged) : new Uint32Array(begin.length);
    this.rows = rowsOf(this);
  }

  /** @param {number} slice */
  length(slice) {
    return this.end[slice] - this.begin[slice];
  }

  get depths() {
    return this.rows.length;
  }

  /**
   * Where in the row the first slice is that ends after `x`.
   * @param {number} depth @param {number} x @param {number} [low] where to start
   */
  firstEndingAfter(depth, x, low = 0) {
    const { reach } = this.rows[depth];
    return partition(low, reach.length, (place) => reach[place] <= x);
  }

  /** Where in the row the first slice is that begins after `x`. @param {number} depth @param {number} x */
  firstBeginningAfter(depth, x) {
    const { slices } = this.rows[depth];
    return partition(0, slices.length, (place) => this.begin[slices[place]] <= x);
  }

  /**
   * Where in the row the first slice is that begins at `x` or after it.
   * @param {number} depth @param {number} x
   */
  firstBeginningFrom(depth, x) {
    const { slices } = this.rows[depth];
    return partition(0, slices.length, (place) => this.begin[slices[place]] < x);
  }

  /** The slice of a depth at `x`, -1: none. @param {number} depth @param {number} x */
  at(depth, x) {
    if (depth < 0 || depth >= this.rows.length) return -1;
    const place = this.firstBeginningAfter(depth, x) - 1;
    if (place < 0) return -1;
    const slice = this.rows[depth].slices[place];
    return this.end[slice] > x || this.begin[slice] === x ? slice : -1;
  }

  /** Slices of the same depth and kind that begin where a slice does, in order. @param {number} slice */
  twins(slice) {
    const depth = this.depth[slice];
    const from = this.firstBeginningFrom(depth, this.begin[slice]);
    const until = this.firstBeginningAfter(depth, this.begin[slice]);
    const here = Array.from(this.rows[depth].slices.slice(from, until));
    return here.filter((one) => this.kind[one] === this.kind[slice]);
  }

  /**
   * The slice nearest to `x` in a depth, not further away than `tolerance`.
   * @param {number} depth @param {number} x @param {number} tolerance
   */
  near(depth, x, tolerance) {
    const exact = this.at(depth, x);
    if (exact >= 0 || depth < 0 || depth >= this.rows.length) return exact;
    const { slices } = this.rows[depth];
    const place = this.firstBeginningAfter(depth, x);
    let best = -1;
    let distance = tolerance;
    if (place < slices.length && this.begin[slices[place]] - x <= distance) {
      best = slices[place];
      distance = this.begin[best] - x;
    }
    if (place > 0 && x - this.end[slices[place - 1]] < distance) best = slices[place - 1];
    return best;
  }

  /** The caller of a slice, -1: none. @param {number} slice */
  parent(slice) {
    for (let depth = this.depth[slice] - 1; depth >= 0; depth--) {
      const found = this.around(depth, slice);
      if (found >= 0) return found;
    }
    return -1;
  }

  /** The slice of a lower depth that a slice is in, -1: none. @param {number} depth @param {number} slice */
  around(depth, slice) {
    const x = this.begin[slice];
    const place = this.firstBeginningAfter(depth, x) - 1;
    const outer = place >= 0 ? this.rows[depth].slices[place] : -1;
    // What has no length may be at the end of what it is in.
    const isInside = outer >= 0 && (this.end[outer] > x || (this.end[outer] === x && this.end[slice] === x));
    return isInside ? outer : -1;
  }

  /** Callers from the innermost to the outermost. @param {number} slice */
  ancestors(slice) {
    const result = [];
    for (let at = this.parent(slice); at >= 0; at = this.parent(at)) result.push(at);
    return result;
  }

  /**
   * The first call inside a slice that ends after `from`, -1: none.
   * @param {number} slice @param {number} [from]
   */
  firstChild(slice, from = -Infinity) {
    const depth = this.depth[slice] + 1;
    if (depth >= this.rows.length) return -1;
    const { slices } = this.rows[depth];
    const place = Math.max(
      this.firstBeginningFrom(depth, this.begin[slice]),
      this.firstEndingAfter(depth, from),
    );
    if (place >= slices.length) return -1;
    const child = slices[place];
    return this.begin[child] < this.end[slice] || this.begin[child] === this.begin[slice] ? child : -1;
  }

  /** What a slice spent itself: its length without the calls inside it. @param {number} slice */
  own(slice) {
    const depth = this.depth[slice] + 1;
    let rest = this.length(slice);
    if (depth >= this.rows.length) return rest;
    const { slices } = this.rows[depth];
    for (let place = this.firstBeginningFrom(depth, this.begin[slice]); place < slices.length; place++) {
      const child = slices[place];
      if (this.begin[child] >= this.end[slice]) break;
      rest -= Math.min(this.end[child], this.end[slice]) - this.begin[child];
    }
    return Math.max(0, rest);
  }

  /** The neighbour in the same depth, -1: none. @param {number} slice @param {1|-1} step */
  sibling(slice, step) {
    const { slices } = this.rows[this.depth[slice]];
    // Slices of a row are numbered in its order.
    const wanted = partition(0, slices.length, (place) => slices[place] < slice) + step;
    return wanted >= 0 && wanted < slices.length ? slices[wanted] : -1;
  }

  /** The slice with a key, -1: not here. @param {SliceKey} key */
  find(key) {
    if (key.depth >= this.rows.length) return -1;
    const { slices } = this.rows[key.depth];
    for (let place = this.firstBeginningAfter(key.depth, key.begin) - 1; place >= 0; place--) {
      const slice = slices[place];
      if (this.begin[slice] !== key.begin) return -1;
      if (key.function === undefined || this.function[slice] === key.function)
        return key.turn === undefined ? slice : (this.twins(slice)[key.turn] ?? slice);
    }
    return -1;
  }

  /** @param {number} slice @returns {SliceKey} */
  key(slice) {
    return { begin: this.begin[slice], depth: this.depth[slice], function: this.function[slice] };
  }

  /**
   * Calls `visit(slice, begin, end, merged)` for what is to be drawn of a depth.
   * Slices narrower than `pixel` in the same pixel become one, `merged` of
   * them. Pixels are counted from 0 of the axis, not from the window, so that
   * panning does not change which slices merge.
   * @param {number} depth @param {number} from @param {number} until @param {number} pixel
   * @param {(slice: number, begin: number, end: number, merged: number) => void} visit
   */
  draw(depth, from, until, pixel, visit) {
    const { slices } = this.rows[depth];
    let place = this.firstEndingAfter(depth, from - pixel);
    while (place < slices.length) {
      const slice = slices[place];
      const begin = this.begin[slice];
      // One without length may be at the very end.
      if (begin > until || (begin === until && this.end[slice] > begin)) return;
      if (this.length(slice) >= pixel) {
        visit(slice, begin, this.end[slice], 1);
        place += 1;
        continue;
      }
      const border = (Math.floor(begin / pixel) + 1) * pixel;
      let next = this.firstEndingAfter(depth, border, place + 1);
      // One that only reaches over the border belongs to the pixel it begins in.
      if (next < slices.length && this.begin[slices[next]] < border && this.length(slices[next]) < pixel)
        next += 1;
      visit(slice, begin, Math.max(this.end[slices[next - 1]], begin + pixel), next - place);
      place = next;
    }
  }

  /**
   * The longest slices that reach into a window, in the order of the track.
   * @param {number} from @param {number} until @param {number} limit
   */
  longest(from, until, limit) {
    const found = [];
    const pixel = (until - from) / 2000;
    for (let depth = 0; depth < this.rows.length; depth++) {
      this.draw(depth, from, until, pixel, (slice, begin, end) => {
        if (end > from) found.push(slice);
      });
    }
    const length = (/** @type {number} */ slice) =>
      Math.min(this.end[slice], until) - Math.max(this.begin[slice], from);
    found.sort((a, b) => length(b) - length(a) || a - b);
    return found.slice(0, limit).sort((a, b) => a - b);
  }
}

/**
 * One row per depth: its slices, and how far the slices up to each place reach, which
 * is sorted even where a document has slices of one depth that overlap.
 * @param {SliceIndex} index
 */
function rowsOf(index) {
  let depths = 0;
  for (const depth of index.depth) depths = Math.max(depths, depth + 1);
  const sizes = new Uint32Array(depths);
  for (const depth of index.depth) sizes[depth] += 1;
  const rows = Array.from(sizes, (size) => ({ slices: new Int32Array(size), reach: new Float64Array(size) }));
  sizes.fill(0);
  for (let slice = 0; slice < index.size; slice++) {
    const depth = index.depth[slice];
    const { slices, reach } = rows[depth];
    const place = sizes[depth]++;
    slices[place] = slice;
    // A slice without length still covers the position it is at.
    const end = Math.max(index.end[slice], index.begin[slice]);
    reach[place] = place > 0 ? Math.max(reach[place - 1], end) : end;
  }
  return rows;
}

/**
 * The first place of a sorted range for which `isBefore` is false.
 * @param {number} low @param {number} high @param {(place: number) => boolean} isBefore
 */
export function partition(low, high, isBefore) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
