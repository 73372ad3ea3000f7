/**
 * The search of a stage: fades what does not match, and steps from hit to hit. The
 * hits of a whole document are known; a live page asks the server for the next one.
 */

import { hitsIn, matchingFunctions } from "../data/search.js";
import { count } from "../ui/format.js";
import { SearchBar } from "../ui/searchbar.js";

/** Functions that a server is asked for at once. */
const ASKED = 50;

export class Finder {
  /**
   * @param {import("../shell.js").Context} context @param {import("../stage/stage.js").Stage} stage
   * @param {() => void} changed
   */
  constructor(context, stage, changed) {
    this.context = context;
    this.stage = stage;
    this.changed = changed;
    this.bar = new SearchBar("Search functions", {
      changed: (query) => this.search(query),
      step: (direction) => this.step(direction),
    });
    /** @type {Map<any, Set<number>>} functions that match, by run */
    this.wanted = new Map();
    /** @type {{lane: number, slice: number, begin: number}[]} */
    this.hits = [];
    this.current = -1;
  }

  get isLive() {
    return this.context.backend.live && this.stage.lanes[0]?.track !== null;
  }

  /** @param {string} query */
  search(query) {
    const { stage } = this;
    this.hits = [];
    this.current = -1;
    if (!query.trim()) {
      stage.highlight(null, []);
      this.bar.say("");
      return this.changed();
    }
    this.wanted = new Map(
      [...new Set(stage.lanes.map((lane) => lane.run))].map((run) => [run, matchingFunctions(run, query)]),
    );
    const of = (/** @type {import("../stage/lane.js").Lane} */ lane) =>
      this.wanted.get(lane.run) ?? new Set();
    if (!this.isLive) {
      this.hits = stage.lanes.flatMap((lane, number) =>
        lane.isHidden ? [] : hitsIn([{ index: stage.index(number), lane: number }], of(lane)),
      );
      this.hits.sort((a, b) => a.begin - b.begin || a.lane - b.lane || a.slice - b.slice);
      this.bar.say(
        this.hits.length === 0
          ? "no hits"
          : count(this.hits.length) + (this.hits.length === 1 ? " hit" : " hits"),
      );
    }
    stage.highlight(
      of,
      this.hits.map((hit) => hit.begin),
    );
    this.changed();
  }

  /** @param {1|-1} direction */
  step(direction) {
    if (!this.bar.query.trim()) return;
    if (this.isLive) return this.ask(direction);
    const { hits, stage } = this;
    if (hits.length === 0) return;
    this.current =
      this.current < 0 ? this.start(direction) : (this.current + direction + hits.length) % hits.length;
    const hit = hits[this.current];
    this.bar.say(count(this.current + 1) + " of " + count(hits.length));
    this.reveal(stage.selectionOf(hit.lane, hit.slice));
  }

  /** The first hit from the left edge of the window on. @param {1|-1} direction */
  start(direction) {
    const { hits, stage } = this;
    const first = hits.findIndex((hit) => hit.begin >= stage.view.from);
    if (direction > 0) return first < 0 ? 0 : first;
    return first <= 0 ? hits.length - 1 : first - 1;
  }

  /** @param {1|-1} direction */
  async ask(direction) {
    const { stage } = this;
    const [run, functions] = this.wanted.entries().next().value ?? [];
    // A server knows functions, not labels.
    const numbers = [...(functions ?? [])].filter((number) => number >= 0).slice(0, ASKED);
    if (numbers.length === 0) return this.bar.say("no hits");
    const { from, until } = stage.view;
    const start = stage.selection
      ? stage.selection.begin
      : direction > 0
        ? Math.floor(from) - 1
        : Math.ceil(until);
    const hit = await this.context.backend.find(run, numbers, Math.max(0, start), direction < 0);
    if (!hit) return this.bar.say(direction > 0 ? "no later hit" : "no earlier hit");
    const lane = stage.lanes.findIndex((one) => one.run === run && one.track === hit.track);
    if (lane < 0) return;
    this.bar.say(stage.axis.position(hit.begin));
    this.reveal({
      lane,
      begin: hit.begin,
      end: hit.end,
      at: hit.begin,
      turn: 0,
      depth: hit.depth,
      function: hit.function,
      kind: 0,
      flags: 0,
      merged: 0,
    });
  }

  /** Shows a hit large enough to be seen. @param {import("../stage/stage.js").Selection} selection */
  reveal(selection) {
    const { stage } = this;
    const length = selection.end - selection.begin;
    if (length < (stage.view.width / Math.max(1, stage.width)) * 3) {
      const room = Math.max(length * 40, stage.view.minimum * 4);
      stage.show(selection.begin - room, selection.end + room);
    }
    stage.select(selection, true);
  }
}
