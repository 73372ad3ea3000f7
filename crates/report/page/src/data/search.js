/**
 * Finding functions by name, and stepping from one of their calls to the next.
 */

/**
 * A test of names: every word of the query must occur, in any case. An empty query
 * matches nothing.
 * @param {string} query @returns {(name: string) => boolean}
 */
export function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => false;
  return (name) => {
    const low = name.toLowerCase();
    return words.every((word) => low.includes(word));
  };
}

/**
 * Numbers of the functions and labels of a run that match.
 * @param {import("./run.js").Run} run @param {string} query @returns {Set<number>}
 */
export function matchingFunctions(run, query) {
  const matches = matcher(query);
  const found = new Set();
  for (let number = 0; number < run.functionCount; number++)
    if (matches(run.functionName(number))) found.add(number);
  run.data.strings.forEach((/** @type {string} */ text, /** @type {number} */ number) => {
    if (matches(text)) found.add(-1 - number);
  });
  return found;
}

/**
 * All calls of some functions, over several tracks, in the order of the axis.
 * @param {{index: import("./slices.js").SliceIndex, lane: number}[]} lanes @param {Set<number>} functions
 * @returns {{lane: number, slice: number, begin: number}[]}
 */
export function hitsIn(lanes, functions) {
  const hits = [];
  for (const { index, lane } of lanes) {
    for (let slice = 0; slice < index.size; slice++) {
      if (functions.has(index.function[slice])) hits.push({ lane, slice, begin: index.begin[slice] });
    }
  }
  // Slices of one lane are in order already; only several lanes need sorting.
  if (lanes.length > 1) hits.sort((a, b) => a.begin - b.begin || a.lane - b.lane || a.slice - b.slice);
  return hits;
}
