/**
 * Where the large parts of a report come from. `EmbeddedBackend` has them in the
 * document; `LiveBackend` asks the server of `hartrace view` and keeps its last
 * answers. Views see no difference.
 */

import { SliceIndex } from "./slices.js";

/** Answers that a live page keeps. */
const CACHE_SIZE = 64;
/** Milliseconds after which an answer takes long. */
const SLOW = 400;

/** @param {import("./document.js").Report} report */
export function backendOf(report) {
  return report.live ? new LiveBackend() : new EmbeddedBackend();
}

/**
 * The slices of one track as a view draws them: `index` is the best that is known for a
 * window, `want` asks for better, `changed` runs when it has come. Here all is known.
 * @param {SliceIndex} index
 */
export function fixedTrack(index) {
  return {
    depths: index.depths,
    changed: () => {},
    lack: "",
    index: () => index,
    want: () => {},
    isSettled: () => true,
  };
}

export class EmbeddedBackend {
  constructor() {
    this.live = false;
    this.tracks = new WeakMap();
  }

  /** @param {import("./run.js").Run} run @param {any} track */
  track(run, track) {
    let known = this.tracks.get(track);
    if (!known) {
      known = fixedTrack(new SliceIndex(track.slices));
      this.tracks.set(track, known);
    }
    return known;
  }

  /**
   * The instructions of a function, null: left out.
   * @param {import("./run.js").Run} run @param {number} number
   */
  async code(run, number) {
    return run.data.code.find((/** @type {any} */ one) => one.function === number)?.rows ?? null;
  }

  /**
   * A source file, null: not found when the report was made.
   * @param {import("./run.js").Run} run @param {number} file
   */
  async source(run, file) {
    return run.data.sources.find((/** @type {any} */ one) => one.file === file) ?? null;
  }

  /** The instructions from a position on, null: the document has none. */
  async instructions() {
    return null;
  }

  /** Finding is done in the document. See `search.js`. */
  async find() {
    return null;
  }
}

/** A track whose slices come in windows. */
class LiveTrack {
  /** @param {LiveBackend} backend @param {import("./run.js").Run} run @param {any} track */
  constructor(backend, run, track) {
    this.backend = backend;
    this.run = run;
    this.track = track;
    this.whole = new SliceIndex(track.slices);
    /** Known, or asked for. */
    this.hasWhole = this.whole.size > 0;
    this.depths = Math.max(this.whole.depths, (track.max_depth || 0) + 1);
    /** @type {{from: number, until: number, pixel: number, index: SliceIndex}|null} */
    this.detail = null;
    /** What the server lacks of the window. */
    this.lack = "";
    this.pending = "";
    this.timer = 0;
    this.isLoading = false;
    /** What to ask for when the answer has come. @type {{path: string, window: any}|null} */
    this.next = null;
    this.changed = () => {};
  }

  /** @param {number} from @param {number} until */
  index(from, until) {
    const { detail } = this;
    if (detail && detail.from <= from && detail.until >= until) return detail.index;
    return this.whole.size > 0 || !detail ? this.whole : detail.index;
  }

  /**
   * Asks for a window, and for its surroundings so that panning finds them. One request
   * is under way at a time; then the last one that is wanted follows.
   * @param {number} from @param {number} until @param {number} pixels
   */
  want(from, until, pixels) {
    if (this.isSettled(from, until, pixels)) return;
    const pixel = (until - from) / pixels;
    const { axis } = this.run;
    const low = Math.max(axis.from, Math.floor(from - (until - from)));
    const high = Math.min(axis.until, Math.ceil(until + (until - from)));
    const wanted = Math.ceil((pixels * (high - low)) / (until - from));
    const path =
      "timeline?" +
      query({ run: this.run.number, track: this.track.id, from: low, until: high, pixels: wanted });
    this.wantWhole(pixels);
    if (path === this.pending) return;
    this.pending = path;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(path, { from: low, until: high, pixel }), 40);
  }

  /** The overview above the lanes needs all of the track, once. @param {number} pixels */
  async wantWhole(pixels) {
    if (this.hasWhole) return;
    this.hasWhole = true;
    const { axis } = this.run;
    const answer = await this.backend.get(
      "timeline?" +
        query({ run: this.run.number, track: this.track.id, from: axis.from, until: axis.until, pixels }),
    );
    if (!answer) return;
    this.whole = new SliceIndex(answer);
    this.depths = Math.max(this.depths, this.whole.depths);
    this.changed();
  }

  /**
   * Is the window known as finely as it can be drawn?
   * @param {number} from @param {number} until @param {number} pixels
   */
  isSettled(from, until, pixels) {
    const { detail } = this;
    return (
      detail !== null &&
      detail.from <= from &&
      detail.until >= until &&
      detail.pixel <= ((until - from) / pixels) * 1.5
    );
  }

  /**
   * @param {string} path
   * @param {{from: number, until: number, pixel: number}} window
   */
  async load(path, window) {
    if (this.isLoading) {
      this.next = { path, window };
      return;
    }
    this.isLoading = true;
    const answer = await this.backend.get(path);
    this.isLoading = false;
    const { next } = this;
    this.next = null;
    if (next) return this.load(next.path, next.window);
    this.pending = "";
    if (!answer) return;
    this.detail = { ...window, index: new SliceIndex(answer) };
    this.lack = answer.lack ?? "";
    this.depths = Math.max(this.depths, this.detail.index.depths);
    this.changed();
  }
}

export class LiveBackend {
  constructor() {
    this.live = true;
    /** @type {Map<string, Promise<any>>} answers, the oldest first */
    this.answers = new Map();
    this.tracks = new WeakMap();
    /**
     * Shows that the server does not answer; nothing when it does again.
     * @type {(message: string) => void}
     */
    this.failed = () => {};
    /** Shows that an answer takes long. @type {(busy: boolean) => void} */
    this.waiting = () => {};
    this.requests = 0;
  }

  /** @param {import("./run.js").Run} run @param {any} track */
  track(run, track) {
    let known = this.tracks.get(track);
    if (!known) {
      known = new LiveTrack(this, run, track);
      this.tracks.set(track, known);
    }
    return known;
  }

  /** An answer of the server, null: it has none. @param {string} path @returns {Promise<any>} */
  get(path) {
    let answer = this.answers.get(path);
    if (answer) this.answers.delete(path);
    else answer = this.request(path);
    this.answers.set(path, answer);
    const [oldest] = this.answers.keys();
    if (this.answers.size > CACHE_SIZE) this.answers.delete(oldest);
    return answer;
  }

  /** @param {string} path */
  async request(path) {
    this.requests += 1;
    const slow = setTimeout(() => this.waiting(true), SLOW);
    try {
      const answer = await fetch(path);
      if (answer.ok) {
        this.failed("");
        return await answer.json();
      }
      if (answer.status !== 404) this.failed("The server answered " + answer.status + ".");
    } catch {
      // Not kept: the server may answer again.
      this.answers.delete(path);
      this.failed("The server does not answer. Is hartrace view still running?");
    } finally {
      clearTimeout(slow);
      this.requests -= 1;
      if (this.requests === 0) this.waiting(false);
    }
    return null;
  }

  /** @param {import("./run.js").Run} run @param {number} number */
  async code(run, number) {
    const answer = await this.get("code?" + query({ run: run.number, function: number }));
    return answer ? (answer.rows ?? answer) : null;
  }

  /** @param {import("./run.js").Run} run @param {number} file */
  source(run, file) {
    return this.get("source?" + query({ run: run.number, file }));
  }

  /** @param {import("./run.js").Run} run @param {number} track @param {number} at @param {number} count */
  instructions(run, track, at, count) {
    return this.get("instructions?" + query({ run: run.number, track, at: Math.floor(at), count }));
  }

  /**
   * The next slice of any of some functions after a position, or the last one before it.
   * @param {import("./run.js").Run} run @param {number[]} functions @param {number} from @param {boolean} back
   * @returns {Promise<{track: number, begin: number, end: number, depth: number, function: number}|null>}
   */
  find(run, functions, from, back) {
    const wanted = { run: run.number, function: functions.join(","), from };
    return this.get("search?" + query(back ? { ...wanted, back: 1 } : wanted));
  }
}

/** Values are numbers and lists of numbers: nothing needs an escape. @param {Record<string, any>} values */
function query(values) {
  return Object.entries(values)
    .map(([key, value]) => key + "=" + value)
    .join("&");
}
