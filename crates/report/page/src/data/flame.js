/**
 * The merged flame graph as slices, so that the same canvas draws it as the timeline.
 * The axis is instructions (or ticks) without an order in time; children of a node are
 * laid out from its left edge, the largest first.
 */

import { Axis } from "./axis.js";
import { KIND, SliceIndex } from "./slices.js";

/**
 * @typedef {{parent: number[], function: number[], self: number[], total: number[], calls: number[],
 *   self_time?: number[]|null}} FlameColumns
 */

/**
 * Totals of the nodes from what each spent itself. A parent precedes its children.
 * @param {ArrayLike<number>} parent @param {ArrayLike<number>} self
 */
export function totalsOf(parent, self) {
  const totals = Float64Array.from(self);
  for (let node = parent.length - 1; node >= 0; node--) {
    if (parent[node] >= 0) totals[parent[node]] += totals[node];
  }
  return totals;
}

/**
 * @param {FlameColumns} flame @param {boolean} byTime
 * @returns {{index: SliceIndex, nodes: Int32Array, totals: Float64Array, whole: number}}
 *   `nodes`: the node of each slice; `whole`: the sum of all roots
 */
export function layoutFlame(flame, byTime) {
  const size = flame.parent.length;
  const totals = totalsOf(flame.parent, byTime && flame.self_time ? flame.self_time : flame.self);
  const { roots, children } = childrenOf(flame.parent, totals);
  const begin = new Float64Array(size);
  const depth = new Uint16Array(size);
  const order = [];
  let whole = 0;
  for (const root of roots) {
    begin[root] = whole;
    whole += totals[root];
  }
  // Depth first, without recursion: recorded programs recurse deeper than scripts may.
  const stack = roots.slice().reverse();
  while (stack.length > 0) {
    const node = /** @type {number} */ (stack.pop());
    if (!(totals[node] > 0)) continue;
    order.push(node);
    let at = begin[node];
    const inside = children[node] || [];
    for (const child of inside) {
      begin[child] = at;
      depth[child] = depth[node] + 1;
      at += totals[child];
    }
    for (let place = inside.length - 1; place >= 0; place--) stack.push(inside[place]);
  }
  const nodes = Int32Array.from(order);
  const pick = (/** @type {ArrayLike<number>} */ column) => Array.from(nodes, (node) => column[node]);
  const begins = pick(begin);
  const index = new SliceIndex({
    begin: begins,
    end: begins.map((at, place) => at + totals[nodes[place]]),
    depth: pick(depth),
    function: pick(flame.function),
    kind: Array.from(nodes, (node) => (flame.function[node] < 0 ? KIND.other : KIND.call)),
  });
  return { index, nodes, totals, whole };
}

/** @param {ArrayLike<number>} parent @param {Float64Array} totals */
function childrenOf(parent, totals) {
  /** @type {number[][]} */
  const children = [];
  const roots = [];
  for (let node = 0; node < parent.length; node++) {
    if (parent[node] < 0) roots.push(node);
    else (children[parent[node]] ||= []).push(node);
  }
  const largestFirst = (/** @type {number} */ a, /** @type {number} */ b) => totals[b] - totals[a] || a - b;
  for (const list of children) if (list) list.sort(largestFirst);
  return { roots, children };
}

/** The axis of a flame graph. @param {Axis} axis of the run @param {boolean} byTime @param {number} whole */
export function flameAxis(axis, byTime, whole) {
  return new Axis({
    unit: byTime ? "time" : "instructions",
    from: 0,
    until: whole,
    ticks_per_second: byTime ? axis.ticksPerSecond : null,
  });
}
