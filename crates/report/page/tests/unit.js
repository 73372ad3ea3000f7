/**
 * Checks of the modules without a page. The browser test bundles this file like the
 * page, runs it, and reads `unitReport`.
 */

import { Axis, roundStep } from "../src/data/axis.js";
import { layoutFlame, totalsOf } from "../src/data/flame.js";
import { hitsIn, matcher } from "../src/data/search.js";
import { Run } from "../src/data/run.js";
import { SliceIndex } from "../src/data/slices.js";
import { link, parseRoute } from "../src/route.js";
import { shortened } from "../src/stage/paint.js";
import { Viewport } from "../src/stage/viewport.js";
import { functionColour } from "../src/ui/colour.js";
import { bytes, compact, count, percent, seconds, signed } from "../src/ui/format.js";
import { relative } from "../src/views/compare.js";

const failures = [];
let checks = 0;

/** @param {string} what @param {any} found @param {any} expected */
function same(what, found, expected) {
  checks += 1;
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) failures.push(what + ": " + a + " instead of " + b);
}

/** Spaces of any width as one kind. @param {string} text */
function plain(text) {
  return text.replace(/\u202f/g, " ").replace(/\u2212/g, "-");
}

function formats() {
  same(
    "count",
    [0, 999, 1000, 1234567, -4096].map((value) => plain(count(value))),
    ["0", "999", "1 000", "1 234 567", "-4 096"],
  );
  same(
    "compact",
    [999, 9999, 12345, 1.5e6, 2e9].map((value) => plain(compact(value))),
    ["999", "9 999", "12.3 k", "1.5 M", "2 G"],
  );
  same(
    "bytes",
    [1, 1023, 1024, 5 * 2 ** 20].map((value) => plain(bytes(value))),
    ["1 byte", "1 023 bytes", "1 KiB", "5 MiB"],
  );
  same(
    "percent",
    [
      [1, 0],
      [0, 5],
      [1, 1e6],
      [1, 3],
      [1, 1],
      [5, 2],
      [99999, 100000],
      [9996, 10000],
    ].map(([a, b]) => plain(percent(a, b))),
    ["\u2013", "0 %", "< 0.01 %", "33.3 %", "100 %", "250 %", "> 99.99 %", "99.96 %"],
  );
  same(
    "seconds",
    [0, 1.5, 2e-3, 3.25e-6, 4e-9].map((value) => plain(seconds(value))),
    ["0 s", "1.5 s", "2 ms", "3.25 \u00b5s", "4 ns"],
  );
  same(
    "signed",
    [3, 0, -3].map((value) => plain(signed(value))),
    ["+3", "0", "-3"],
  );
  same(
    "relative",
    [
      [0, 1],
      [1, 0],
      [5, 5],
      [4, 6],
    ].map(([a, b]) => plain(relative(a, b))),
    ["new", "gone", "=", "\u25b2 +50.0 %"],
  );
  same(
    "shortened",
    [shortened("memcpy", 6.9), shortened("memcpy", 5), shortened("memcpy", 1)],
    ["memcpy", "memc\u2026", ""],
  );
}

function axes() {
  same("steps", [0.7, 1, 1.1, 3, 7, 1500].map(roundStep), [1, 1, 2, 5, 10, 2000]);
  const instructions = new Axis({ unit: "instructions", from: 0, until: 1000, ticks_per_second: null });
  same(
    "ticks of instructions",
    instructions.ticks(10, 350, 90).map((tick) => tick.at),
    [100, 200, 300],
  );
  const time = new Axis({ unit: "time", from: 500, until: 2500, ticks_per_second: 1e6 });
  same(
    "ticks of time",
    time.ticks(500, 2500, 400).map((tick) => plain(tick.label)),
    ["0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms", "2.0 ms"],
  );
  same("position", plain(time.position(1750)), "1.25 ms");
  same("empty axis", new Axis({ unit: "instructions", from: 0, until: 0 }).until, 1);
}

/** main [0,100) calls a [10,40) with b [15,20) and b [30,35), and c [50,90). */
function sample() {
  return new SliceIndex({
    begin: [0, 10, 15, 30, 50],
    end: [100, 40, 20, 35, 90],
    depth: [0, 1, 2, 2, 1],
    function: [0, 1, 2, 2, 3],
  });
}

function slices() {
  const index = sample();
  same(
    "at",
    [index.at(1, 10), index.at(1, 39), index.at(1, 40), index.at(2, 17), index.at(5, 1)],
    [1, 1, -1, 2, -1],
  );
  same("near", [index.near(1, 45, 4), index.near(1, 45, 5), index.near(1, 41, 3)], [-1, 4, 1]);
  same(
    "family",
    [
      index.parent(2),
      index.parent(0),
      index.firstChild(0),
      index.firstChild(4),
      index.firstChild(1),
      index.firstChild(1, 25),
    ],
    [1, -1, 1, -1, 2, 3],
  );
  same("siblings", [index.sibling(1, 1), index.sibling(4, 1), index.sibling(3, -1)], [4, -1, 2]);
  same("ancestors", index.ancestors(3), [1, 0]);
  same("own", [index.own(0), index.own(1), index.own(4)], [30, 20, 40]);
  same(
    "find",
    [index.find(index.key(3)), index.find({ begin: 31, depth: 2 }), index.find({ begin: 0, depth: 9 })],
    [3, -1, -1],
  );
  same("longest", index.longest(0, 100, 3), [0, 1, 4]);
  // main [0,9) ends with a trap and two more in its handler, none of which has a length.
  const traps = new SliceIndex({
    begin: [0, 9, 9, 9],
    end: [9, 9, 9, 9],
    depth: [0, 1, 2, 2],
    function: [0, -1, -1, -1],
    kind: [0, 2, 2, 2],
  });
  same("twins", [traps.twins(1), traps.twins(3)], [[1], [2, 3]]);
  same(
    "find one of twins",
    [0, 1].map((turn) => traps.find({ ...traps.key(2), turn })),
    [2, 3],
  );
  same("callers of a trap without length", [traps.ancestors(1), traps.ancestors(3)], [[0], [1, 0]]);
  let drawn = 0;
  traps.draw(2, 0, 9, 0.01, () => (drawn += 1));
  same("a trap without length at the end is drawn", drawn > 0, true);
  const run = new Run(
    {
      axis: { unit: "instructions", from: 0, until: 9 },
      functions: { name: [] },
      tracks: [],
      traps: { track: [0, 0, 0], at: [9, 9, 9], depth: [1, 2, 2], end: [-1, -1, -1], interrupt: [0, 0, 1] },
    },
    0,
  );
  same(
    "slices of traps",
    [0, 1, 2].map((trap) => run.sliceOfTrap(traps, trap)),
    [1, 2, 3],
  );
  same(
    "traps of slices",
    [1, 2, 3].map((slice) => run.trapOfSlice(0, traps, slice)),
    [0, 1, 2],
  );
  same(
    "one of twins is an interrupt",
    [2, 3].map((slice) => run.isInterrupt(0, traps, slice)),
    [false, true],
  );
  same("empty", [new SliceIndex(null).depths, new SliceIndex(null).longest(0, 1, 5)], [0, []]);
}

/** What is drawn covers what is there, whatever the zoom, and is never more than the screen has pixels. */
function drawing() {
  const begin = [];
  const end = [];
  for (let at = 0; at < 100000; at += 3) {
    begin.push(at);
    end.push(at + 1 + (at % 2));
  }
  const zeros = begin.map(() => 0);
  const index = new SliceIndex({ begin, end, depth: zeros, function: zeros });
  for (const [from, until, pixels] of [
    [0, 100000, 1000],
    [500, 700, 1000],
    [99000, 100000, 300],
  ]) {
    let sum = 0;
    let drawn = 0;
    index.draw(0, from, until, (until - from) / pixels, (slice, first, last, merged) => {
      sum += merged;
      drawn += 1;
    });
    const expected = begin.filter(
      (at, slice) => at < until && end[slice] > from - (until - from) / pixels,
    ).length;
    same("slices in " + from, sum, expected);
    same("few boxes in " + from, drawn <= pixels + 2, true);
  }
  const merged = (/** @type {number} */ shift) => {
    const found = [];
    index.draw(
      0,
      2000 + shift,
      52000 + shift,
      50,
      (slice, first) => first >= 3000 && first < 50000 && found.push(slice),
    );
    return found;
  };
  same("panning does not change what merges", merged(0), merged(137));
  const hidden = new SliceIndex({
    begin: [0, 5, 8],
    end: [100, 6, 9],
    depth: [0, 0, 0],
    function: [0, 0, 0],
  });
  let seen = 0;
  hidden.draw(0, 50, 60, 0.1, () => (seen += 1));
  same("a long slice before short ones is drawn", seen >= 1, true);
}

function viewports() {
  const view = new Viewport(0, 1000, 10);
  view.zoom(0.5, 250);
  same("zoom keeps its anchor", [view.from, view.until], [125, 625]);
  view.pan(10000);
  same("pan stops at the end", [view.from, view.until], [500, 1000]);
  view.zoom(1e-9, 750);
  same("zoom stops at the smallest width", view.width, 10);
  view.zoom(1e9, 750);
  same("zoom stops at all", [view.isWhole, view.from, view.until], [true, 0, 1000]);
  view.set(100, 200);
  view.reveal(120, 130);
  same("what is seen does not move", [view.from, view.until], [100, 200]);
  view.reveal(500, 520);
  same("reveal centres", [view.from, view.until], [460, 560]);
  view.reveal(400, 500);
  same("enough of a long part is seen", view.from, 460);
  view.frame(300, 400);
  same("frame leaves room", [view.from, view.until], [290, 410]);
}

function flames() {
  const flame = {
    parent: [-1, 0, 0, 1],
    function: [0, 1, 2, 3],
    self: [10, 20, 30, 40],
    total: [],
    calls: [1, 1, 1, 1],
  };
  same("totals", Array.from(totalsOf(flame.parent, flame.self)), [100, 60, 30, 40]);
  const { index, whole } = layoutFlame(flame, false);
  same("whole", whole, 100);
  same(
    "largest child first",
    [Array.from(index.function), Array.from(index.begin), Array.from(index.end)],
    [
      [0, 1, 3, 2],
      [0, 0, 0, 60],
      [100, 60, 40, 90],
    ],
  );
  /** @type {import("../src/data/flame.js").FlameColumns} */
  const deep = { parent: [], function: [], self: [], total: [], calls: [] };
  for (let node = 0; node < 20000; node++) {
    deep.parent.push(node - 1);
    deep.function.push(0);
    deep.self.push(1);
    deep.calls.push(1);
  }
  same("deep recursion", layoutFlame(deep, false).index.depths, 20000);
}

function searches() {
  const matches = matcher("MEM cpy");
  same(
    "words in any order and case",
    [matches("memcpy"), matches("copy_mem"), matches("cpy_from_mem")],
    [true, false, true],
  );
  same("nothing matches nothing", matcher("  ")("x"), false);
  same(
    "hits",
    hitsIn(
      [
        { index: sample(), lane: 0 },
        { index: sample(), lane: 1 },
      ],
      new Set([2]),
    ).map((hit) => [hit.lane, hit.slice]),
    [
      [0, 2],
      [1, 2],
      [0, 3],
      [1, 3],
    ],
  );
}

function routes() {
  const text = link("timeline", 1, ["a/b", 3], { search: "operator<< &x", from: 0, empty: "" });
  same("routes round trip", parseRoute(text), {
    view: "timeline",
    run: 1,
    parts: ["a/b", "3"],
    query: { search: "operator<< &x", from: "0" },
  });
  same("broken routes", [parseRoute("#%zz/x").view, parseRoute("").run], ["%zz", 0]);
}

/** Relative luminance of `hsl(h s% l%)`. @param {string} colour */
function luminance(colour) {
  const [hue, saturation, lightness] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  const spread = (saturation / 100) * Math.min(lightness / 100, 1 - lightness / 100);
  const channel = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    const value = lightness / 100 - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(4);
}

/** Labels can be read on every function's colour. */
function colours() {
  let darkest = 1;
  let brightest = 0;
  for (let number = 0; number < 2000; number++) {
    darkest = Math.min(darkest, luminance(functionColour("f" + number, false)));
    brightest = Math.max(brightest, luminance(functionColour("f" + number, true)));
  }
  // --slice-ink: #16191d on light, #f1f3f6 on dark.
  same("contrast on light", (darkest + 0.05) / (0.0097 + 0.05) >= 4.5, true);
  same("contrast on dark", (0.889 + 0.05) / (brightest + 0.05) >= 4.5, true);
}

for (const group of [formats, axes, slices, drawing, viewports, flames, searches, routes, colours]) group();
globalThis.unitReport = { checks, failures };
