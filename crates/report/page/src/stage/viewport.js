/**
 * Which part of an axis is seen. All zooming and panning is done here, so that wheel,
 * fingers, keys and the overview above the lanes agree about limits.
 */

export class Viewport {
  /** @param {number} low @param {number} high limits @param {number} minimum the smallest width */
  constructor(low, high, minimum) {
    this.low = low;
    this.high = high;
    this.minimum = Math.min(minimum, high - low);
    this.from = low;
    this.until = high;
  }

  get width() {
    return this.until - this.from;
  }

  get isWhole() {
    return this.from <= this.low && this.until >= this.high;
  }

  /** Shows a part, moved and widened as the limits demand. @param {number} from @param {number} until */
  set(from, until) {
    const whole = this.high - this.low;
    const width = Math.min(whole, Math.max(this.minimum, until - from));
    const middle = (from + until) / 2;
    const start = Math.min(this.high - width, Math.max(this.low, middle - width / 2));
    this.from = start;
    this.until = start + width;
  }

  /**
   * Makes the part `factor` times as wide; the anchor keeps its place.
   * @param {number} factor @param {number} anchor
   */
  zoom(factor, anchor) {
    const whole = this.high - this.low;
    const width = Math.min(whole, Math.max(this.minimum, this.width * factor));
    const share = (anchor - this.from) / this.width;
    const start = anchor - share * width;
    this.set(start, start + width);
  }

  /** Moves by a length of the axis. @param {number} length */
  pan(length) {
    const start = Math.min(this.high - this.width, Math.max(this.low, this.from + length));
    this.set(start, start + this.width);
  }

  reset() {
    this.from = this.low;
    this.until = this.high;
  }

  /** Moves as little as possible so that a part is seen. @param {number} begin @param {number} end */
  reveal(begin, end) {
    const { width } = this;
    const seen = Math.min(end, this.until) - Math.max(begin, this.from);
    // All of it, or enough of a long part.
    if (seen >= Math.min(end - begin, width * 0.3)) return;
    const middle = end - begin > width ? begin + width * 0.4 : (begin + end) / 2;
    this.set(middle - width / 2, middle + width / 2);
  }

  /** A part with some room on both sides. @param {number} begin @param {number} end */
  frame(begin, end) {
    const room = (end - begin) * 0.1 || this.minimum / 2;
    this.set(begin - room, end + room);
  }
}
