/**
 * Addresses within the page: `#view/run/part/part?key=value`. They work from disk, can
 * be sent to a colleague with the file, and the browser's Back returns to the last one.
 */

/** @typedef {{view: string, run: number, parts: string[], query: Record<string, string>}} Route */

/** @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const [view = "", run = "0", ...parts] = path.split("/").map(decode);
  return {
    view,
    run: Number.parseInt(run, 10) || 0,
    parts,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** A broken escape is taken as it is. @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * @param {string} view @param {number} run @param {(string|number)[]} [parts]
 * @param {Record<string, string|number|null|undefined>} [query] empty values are left out
 */
export function link(view, run, parts = [], query = {}) {
  const values = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") values.set(key, String(value));
  }
  const path = [view, run, ...parts].map((part) => encodeURIComponent(part)).join("/");
  const text = values.toString();
  return "#" + path + (text ? "?" + text : "");
}

/** Changes the address without a step in the history: the view is already there. @param {string} hash */
export function replaceRoute(hash) {
  try {
    history.replaceState(history.state, "", hash);
  } catch {
    // Browsers limit how often a page may do so; the next change sets it.
  }
}

/** Goes to an address. @param {string} hash */
export function go(hash) {
  location.hash = hash;
}
