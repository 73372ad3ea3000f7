/**
 * Reads the document of the page: embedded as JSON, embedded as compressed JSON in
 * base64, or served by `hartrace view`.
 */

import { Run } from "./run.js";

const SCHEMA = "hartrace-report";
const VERSION = 1;

/** A report that can be shown. */
export class Report {
  /** @param {any} data the document */
  constructor(data) {
    this.tool = data.tool || "hartrace";
    this.live = Boolean(data.live);
    /** @type {Run[]} */
    this.runs = data.runs.map((/** @type {any} */ run, /** @type {number} */ number) => new Run(run, number));
    this.compare = data.compare || null;
  }
}

/** @returns {Promise<Report>} */
export async function loadReport() {
  const element = document.getElementById("data");
  if (!element) throw new Error("The page contains no data.");
  let data = await embedded(element);
  // The text is not needed again; a large document would stay in memory twice.
  element.remove();
  if (data.live && !data.runs) {
    const answer = await fetch("report.json");
    if (!answer.ok)
      throw new Error("The server answered " + answer.status + " to the request for the report.");
    data = await answer.json();
    data.live = true;
  }
  check(data);
  return new Report(data);
}

/** @param {HTMLElement} element @returns {Promise<any>} */
async function embedded(element) {
  const text = element.textContent || "";
  if (!/base64/.test(element.getAttribute("type") || "")) return JSON.parse(text);
  const stream = new Blob([bytesOfBase64(text.trim())]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** @param {string} text */
function bytesOfBase64(text) {
  // New in browsers, and several times as fast.
  const { fromBase64 } = /** @type {any} */ (Uint8Array);
  if (fromBase64) return fromBase64.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** @param {any} data */
function check(data) {
  if (!data || data.schema !== SCHEMA) throw new Error("The data of this page is not a hartrace report.");
  if (data.version !== VERSION) {
    throw new Error("The report has version " + data.version + ", this page reads version " + VERSION + ".");
  }
  if (!Array.isArray(data.runs) || data.runs.length === 0) throw new Error("The report contains no run.");
}
