/**
 * The horizontal axis of a run: instructions of the hart, or time in ticks of its
 * clock. Everything that shows a position or a length asks the axis for the text.
 */

import { compact, count, seconds } from "../ui/format.js";

export class Axis {
  /**
   * @param {{unit: string, from: number, until: number, ticks_per_second?: number|null, origin?: string}} data
   */
  constructor(data) {
    this.from = data.from;
    /** Never empty, so that scales need no special case. */
    this.until = Math.max(data.until, data.from + 1);
    this.isTime = data.unit === "time";
    this.ticksPerSecond = data.ticks_per_second || null;
    /** Added to positions: times may need more digits than numbers of a script have. */
    this.origin = BigInt(data.origin || 0);
    this.unit = !this.isTime ? "instructions" : this.ticksPerSecond ? "time" : "ticks";
  }

  /** A length as text. @param {number} length */
  span(length) {
    if (this.isTime && this.ticksPerSecond) return seconds(length / this.ticksPerSecond);
    return (
      count(Math.round(length)) + (this.isTime ? " ticks" : length === 1 ? " instruction" : " instructions")
    );
  }

  /** A length in few characters. @param {number} length */
  shortSpan(length) {
    if (this.isTime && this.ticksPerSecond) return seconds(length / this.ticksPerSecond);
    return compact(Math.round(length)) + (this.isTime ? " ticks" : "");
  }

  /** A position as text. Times count from the start of the run. @param {number} x */
  position(x) {
    if (this.isTime && this.ticksPerSecond) return preciseSeconds((x - this.from) / this.ticksPerSecond);
    if (this.origin) return String(this.origin + BigInt(Math.round(x)));
    return count(Math.round(x));
  }

  /**
   * Round positions between `from` and `until`, at least `minimum` apart.
   * @param {number} from @param {number} until @param {number} minimum
   */
  ticks(from, until, minimum) {
    const scale = this.isTime && this.ticksPerSecond ? this.ticksPerSecond : 1;
    const origin = scale === 1 ? 0 : this.from;
    const step = Math.max(roundStep(minimum / scale) * scale, scale === 1 ? 1 : 0);
    const result = [];
    for (let n = Math.ceil((from - origin) / step); origin + n * step <= until; n++) {
      result.push({ at: origin + n * step, label: this.tickLabel(n * step, step, until - origin) });
      if (result.length > 500) break;
    }
    return result;
  }

  /**
   * All ticks of a ruler have the unit of its end.
   * @param {number} offset @param {number} step @param {number} last
   */
  tickLabel(offset, step, last) {
    if (this.isTime && this.ticksPerSecond) {
      return fixedSeconds(
        offset / this.ticksPerSecond,
        step / this.ticksPerSecond,
        last / this.ticksPerSecond,
      );
    }
    return count(Math.round(offset));
  }
}

/** The next of 1, 2, 5, 10, 20, … that is not below `minimum`. @param {number} minimum */
export function roundStep(minimum) {
  const power = 10 ** Math.floor(Math.log10(minimum));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= minimum * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/**
 * As many decimals as the step of an axis needs.
 * @param {number} value @param {number} step @param {number} last decides the unit
 */
function fixedSeconds(value, step, last) {
  const [limit, unit] = unitOf(last);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / limit) - 1e-9));
  return (value / limit).toFixed(Math.min(decimals, 9)) + "\u202f" + unit;
}

/** To the nanosecond. @param {number} value */
function preciseSeconds(value) {
  const [limit, unit] = unitOf(Math.abs(value));
  const decimals = Math.round(Math.log10(limit / 1e-9));
  const text = (value / limit).toFixed(decimals);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text) + "\u202f" + unit;
}

/** @param {number} size @returns {[number, string]} */
function unitOf(size) {
  if (size >= 1) return [1, "s"];
  if (size >= 1e-3) return [1e-3, "ms"];
  if (size >= 1e-6) return [1e-6, "\u00b5s"];
  return [1e-9, "ns"];
}
