/**
 * One run of a document: names for the numbers in its columns, and the small lookups
 * that several views share. The columns stay as they were read.
 */

import { baseName } from "../ui/format.js";
import { Axis } from "./axis.js";
import { KIND, partition } from "./slices.js";

export const UNKNOWN = "unknown";

export class Run {
  /** @param {any} data a RUN of the document @param {number} number its place there */
  constructor(data, number) {
    this.data = data;
    this.number = number;
    this.name = data.name || "run " + (number + 1);
    this.axis = new Axis(data.axis);
    this.functions = data.functions;
    this.tracks = data.tracks;
    this.functionCount = data.functions.name.length;
    /** @type {Map<string, number>|null} */
    this.functionsByName = null;
    /** @type {{number: number, first: bigint}[]|null} */
    this.functionsByAddress = null;
    /** @type {Map<string, {number: number, address: string}>|null} */
    this.codeByLine = null;
    this.trapLists = new Map();
    this.causeNames = new Map(
      (data.interrupts || []).map((/** @type {any} */ row) => [causeKey(row.interrupt, row.cause), row.name]),
    );
  }

  /** @param {number} number of a string */
  string(number) {
    return this.data.strings[number] ?? UNKNOWN;
  }

  /** The name of a function, `unknown` for -1. @param {number} number */
  functionName(number) {
    return number >= 0 && number < this.functionCount ? this.string(this.functions.name[number]) : UNKNOWN;
  }

  /**
   * What a slice or a node of the flame graph is called: a function or, below 0, a string.
   * @param {number} number
   */
  label(number) {
    return number < 0 ? this.string(-1 - number) : this.functionName(number);
  }

  /** @param {number} number of a file, -1: unknown */
  fileName(number) {
    return number >= 0 ? this.string(number) : "";
  }

  /** `main.c:12`, or nothing. @param {number} file @param {number} line */
  place(file, line) {
    return file >= 0 ? baseName(this.fileName(file)) + (line > 0 ? ":" + line : "") : "";
  }

  /** The number of a function, -1: the run has none of that name. @param {string} name */
  functionNamed(name) {
    if (!this.functionsByName) {
      this.functionsByName = new Map();
      for (let number = 0; number < this.functionCount; number++) {
        const key = this.functionName(number);
        if (!this.functionsByName.has(key)) this.functionsByName.set(key, number);
      }
    }
    return this.functionsByName.get(name) ?? -1;
  }

  /** The function that contains an address, -1: none. @param {string|null} address hexadecimal */
  functionAt(address) {
    if (!address) return -1;
    this.functionsByAddress ??= Array.from(this.functions.address, (first, number) => ({
      number,
      first: BigInt(first),
    })).sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
    const list = this.functionsByAddress;
    const wanted = BigInt(address);
    const found = list[partition(0, list.length, (place) => list[place].first <= wanted) - 1];
    return found && wanted < found.first + BigInt(this.functions.size[found.number] || 1) ? found.number : -1;
  }

  /**
   * The first instruction of a source line that the document has, null: none.
   * @param {number} file @param {number} line
   */
  codeOfLine(file, line) {
    if (!this.codeByLine) {
      this.codeByLine = new Map();
      for (const { function: number, rows } of this.data.code || []) {
        rows.line.forEach((/** @type {number} */ one, /** @type {number} */ row) => {
          const key = rows.file[row] + ":" + one;
          if (!this.codeByLine?.has(key)) this.codeByLine?.set(key, { number, address: rows.address[row] });
        });
      }
    }
    return this.codeByLine.get(file + ":" + line) ?? null;
  }

  /** @param {number} id of a track */
  trackName(id) {
    const track = this.tracks.find((/** @type {any} */ one) => one.id === id);
    return track ? track.name : "track " + id;
  }

  /** Numbers of the traps of a track, in order. @param {number} track @returns {number[]} */
  trapsOf(track) {
    let list = this.trapLists.get(track);
    if (!list) {
      const { traps } = this.data;
      list = [];
      for (let trap = 0; trap < traps.at.length; trap++) if (traps.track[trap] === track) list.push(trap);
      list.sort((/** @type {number} */ a, /** @type {number} */ b) => traps.at[a] - traps.at[b]);
      this.trapLists.set(track, list);
    }
    return list;
  }

  /** Numbers of the gaps of a track. @param {number} track @returns {number[]} */
  gapsOf(track) {
    const result = [];
    this.data.gaps.track.forEach(
      (/** @type {number} */ of, /** @type {number} */ gap) => of === track && result.push(gap),
    );
    return result;
  }

  /** @param {number} trap */
  trapName(trap) {
    const { traps } = this.data;
    const interrupt = Boolean(traps.interrupt[trap]);
    return (
      this.causeNames.get(causeKey(interrupt, traps.cause[trap])) ??
      (interrupt ? "interrupt " : "exception ") + traps.cause[trap]
    );
  }

  /** The name of the code that a trap interrupted: a function, or an address without one. @param {number} trap */
  interruptedName(trap) {
    const { traps } = this.data;
    return traps.function[trap] < 0 && traps.epc[trap]
      ? traps.epc[trap]
      : this.functionName(traps.function[trap]);
  }

  /** How many traps there are, listed or not. */
  get trapCount() {
    return (this.data.interrupts || []).reduce(
      (/** @type {number} */ sum, /** @type {any} */ row) => sum + row.count,
      0,
    );
  }

  /** Was a function executed, or something that it called? @param {number} number */
  isExecuted(number) {
    return this.functions.self[number] > 0 || this.functions.total[number] > 0;
  }

  /** How many functions were executed. */
  get executedCount() {
    let sum = 0;
    for (let number = 0; number < this.functionCount; number++) if (this.isExecuted(number)) sum += 1;
    return sum;
  }

  /** How long a trap took, null: it never returned. @param {number} trap */
  trapLength(trap) {
    const { traps } = this.data;
    return traps.end[trap] < 0 ? null : traps.end[trap] - traps.at[trap] - (traps.away?.[trap] ?? 0);
  }

  /** The trap that begins at a position, or the last before it; -1: none. @param {number} track @param {number} begin */
  trapAt(track, begin) {
    const list = this.trapsOf(track);
    const { at } = this.data.traps;
    const after = partition(0, list.length, (place) => at[list[place]] <= begin);
    return after > 0 ? list[after - 1] : -1;
  }

  /**
   * The trap that a slice shows: of those at its begin and depth the one that is in the
   * same place among them as the slice; -1: none.
   * @param {number} track @param {import("./slices.js").SliceIndex} index @param {number} slice
   */
  trapOfSlice(track, index, slice) {
    const { traps } = this.data;
    const begin = index.begin[slice];
    const same = this.trapsFrom(track, begin).filter((trap) => traps.depth?.[trap] === index.depth[slice]);
    if (same.length === 0) return this.trapAt(track, begin);
    return same[Math.min(index.twins(slice).indexOf(slice), same.length - 1)];
  }

  /**
   * The slice that shows a trap, -1: none.
   * @param {import("./slices.js").SliceIndex} index @param {number} trap
   */
  sliceOfTrap(index, trap) {
    const { traps } = this.data;
    const depth = traps.depth?.[trap];
    const first = index.at(depth ?? -1, traps.at[trap]);
    if (first < 0 || index.begin[first] !== traps.at[trap] || index.kind[first] !== KIND.trap) return -1;
    const twins = index.twins(first);
    const same = this.trapsFrom(traps.track[trap], traps.at[trap]).filter(
      (other) => traps.depth[other] === depth,
    );
    return twins[Math.min(same.indexOf(trap), twins.length - 1)] ?? -1;
  }

  /** Numbers of the traps that begin at a position. @param {number} track @param {number} begin */
  trapsFrom(track, begin) {
    const list = this.trapsOf(track);
    const { at } = this.data.traps;
    const first = partition(0, list.length, (place) => at[list[place]] < begin);
    const after = partition(first, list.length, (place) => at[list[place]] <= begin);
    return list.slice(first, after);
  }

  /** The gap that begins at a position, -1: none. @param {number} track @param {number} begin */
  gapAt(track, begin) {
    return this.gapsOf(track).find((gap) => this.data.gaps.at[gap] === begin) ?? -1;
  }

  /**
   * Does a slice of kind trap belong to an interrupt?
   * @param {number} track @param {import("./slices.js").SliceIndex} index @param {number} slice
   */
  isInterrupt(track, index, slice) {
    const trap = this.trapOfSlice(track, index, slice);
    return trap >= 0 && Boolean(this.data.traps.interrupt[trap]);
  }

  /** Numbers of functions, most expensive first. @param {number} limit */
  hottest(limit) {
    const { self } = this.functions;
    return Array.from({ length: this.functionCount }, (_, number) => number)
      .filter((number) => self[number] > 0)
      .sort((a, b) => self[b] - self[a])
      .slice(0, limit);
  }

  /** Numbers of branches that only went one way. */
  oneSidedBranches() {
    const { taken, not_taken } = this.data.branches;
    const never = [];
    const always = [];
    for (let branch = 0; branch < taken.length; branch++) {
      if (taken[branch] === 0 && not_taken[branch] > 0) never.push(branch);
      if (not_taken[branch] === 0 && taken[branch] > 0) always.push(branch);
    }
    return { never, always };
  }
}

/** @param {boolean} interrupt @param {number} cause */
function causeKey(interrupt, cause) {
  return (interrupt ? "i" : "e") + cause;
}

/** Words for kinds of slices. @param {number} kind */
export function kindName(kind) {
  switch (kind) {
    case KIND.tailCall:
      return "tail call";
    case KIND.trap:
      return "trap handler";
    case KIND.gap:
      return "gap in the trace";
    case KIND.other:
      return "another thread, or idle";
    case KIND.summary:
      return "several short calls";
    default:
      return "call";
  }
}
