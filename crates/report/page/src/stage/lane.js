/**
 * A lane of the stage: the calls of one track with its traps and gaps above them.
 */

import { partition } from "../data/slices.js";

/**
 * @typedef {{depths: number, changed: () => void,
 *   index: (from: number, until: number) => import("../data/slices.js").SliceIndex,
 *   want: (from: number, until: number, pixels: number) => void,
 *   isSettled: (from: number, until: number, pixels: number) => boolean}} TrackData
 */

export class Lane {
  /**
   * @param {import("../data/run.js").Run} run @param {string} title @param {TrackData} data
   * @param {number|null} track its id, null: not a track (a flame graph)
   */
  constructor(run, title, data, track) {
    this.run = run;
    this.title = title;
    this.data = data;
    this.track = track;
    this.isHidden = false;
    this.interrupts = new Marks([], []);
    this.exceptions = new Marks([], []);
    this.gaps = new Marks([], []);
    if (track === null) return;
    const { traps, gaps } = run.data;
    const ofTrack = run.trapsOf(track);
    const marks = (/** @type {boolean} */ interrupt) => {
      const some = ofTrack.filter((trap) => Boolean(traps.interrupt[trap]) === interrupt);
      return new Marks(
        some.map((trap) => traps.at[trap]),
        some,
      );
    };
    this.interrupts = marks(true);
    this.exceptions = marks(false);
    const lost = run.gapsOf(track);
    this.gaps = new Marks(
      lost.map((gap) => gaps.at[gap]),
      lost,
      lost.map((gap) => gaps.end[gap]),
    );
  }

  get hasMarks() {
    return this.interrupts.at.length + this.exceptions.at.length + this.gaps.at.length > 0;
  }
}

/** Parts of the axis that do not overlap, sorted, each with the number of what happened there. */
class Marks {
  /** @param {number[]} at @param {number[]} numbers @param {number[]} [end] absent: they have no length */
  constructor(at, numbers, end = at) {
    this.at = at;
    this.numbers = numbers;
    this.end = end;
  }

  /**
   * Visits at most one mark per `cell`, so that a million marks cost as much as the
   * screen is wide.
   * @param {number} from @param {number} until @param {number} cell
   * @param {(number: number, at: number) => void} visit
   */
  each(from, until, cell, visit) {
    const { at, end } = this;
    let place = partition(0, at.length, (one) => end[one] < from);
    while (place < at.length && at[place] <= until) {
      visit(this.numbers[place], at[place]);
      const border = (Math.floor(at[place] / cell) + 1) * cell;
      place = partition(place + 1, at.length, (one) => at[one] < border);
    }
  }

  /** The mark nearest to `x`, -1: none within `tolerance`. @param {number} x @param {number} tolerance */
  near(x, tolerance) {
    const { at } = this;
    const after = partition(0, at.length, (one) => at[one] < x);
    let best = -1;
    for (const place of [after - 1, after]) {
      if (place < 0 || place >= at.length) continue;
      const distance = Math.abs(at[place] - x);
      if (distance <= tolerance && (best < 0 || distance < Math.abs(at[best] - x))) best = place;
    }
    return best < 0 ? -1 : this.numbers[best];
  }
}

/** Heights in CSS pixels. */
export const METRICS = Object.freeze({ ruler: 22, header: 20, marks: 12, row: 18, space: 10 });

/**
 * Where each lane is, from the top of all of them.
 * @param {Lane[]} lanes
 * @returns {{lanes: {top: number, marks: number, rows: number, bottom: number}[], height: number}}
 */
export function layoutLanes(lanes) {
  let top = METRICS.ruler;
  const places = lanes.map((lane) => {
    if (lane.isHidden) return { top, marks: top, rows: top, bottom: top };
    const marks = top + METRICS.header;
    const rows = marks + (lane.hasMarks ? METRICS.marks : 0);
    const bottom = rows + Math.max(1, lane.data.depths) * METRICS.row;
    const place = { top, marks, rows, bottom };
    top = bottom + METRICS.space;
    return place;
  });
  return { lanes: places, height: top };
}
