/**
 * Numbers as text, in one style for the whole page: digits in groups of three with a
 * narrow space, as the commands print them.
 */

const NARROW_SPACE = "\u202f";

/** @param {string} digits */
function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, NARROW_SPACE);
}

/** A whole number. @param {number|null|undefined} value */
export function count(value) {
  if (value === null || value === undefined) return "";
  const [whole, fraction] = String(Math.abs(value)).split(".");
  const sign = value < 0 ? "\u2212" : "";
  if (whole.includes("e")) return sign + whole;
  return sign + grouped(whole) + (fraction ? "." + fraction.slice(0, 3) : "");
}

/** A difference, with its sign. @param {number} value */
export function signed(value) {
  return (value > 0 ? "+" : "") + count(value);
}

/** Three significant digits. @param {number} value */
function three(value) {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(digits, 6));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A number in at most about six characters: 1.23 M. @param {number} value */
export function compact(value) {
  const size = Math.abs(value);
  for (const [limit, letter] of /** @type {[number, string][]} */ ([
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ])) {
    if (size >= limit) return three(value / (letter === "k" ? 1e3 : limit)) + NARROW_SPACE + letter;
  }
  return Number.isInteger(value) ? count(value) : three(value);
}

/** @param {number} value */
export function bytes(value) {
  for (const [limit, unit] of /** @type {[number, string][]} */ ([
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ])) {
    if (value >= limit) return three(value / limit) + NARROW_SPACE + unit;
  }
  return count(value) + NARROW_SPACE + (value === 1 ? "byte" : "bytes");
}

/** A share of a whole. @param {number} part @param {number} whole */
export function percent(part, whole) {
  if (!(whole > 0)) return "\u2013";
  const share = (100 * part) / whole;
  if (share === 0) return "0" + NARROW_SPACE + "%";
  if (share < 0.01) return "<" + NARROW_SPACE + "0.01" + NARROW_SPACE + "%";
  if (share >= 1000) return grouped(share.toFixed(0)) + NARROW_SPACE + "%";
  // Only all is 100 %.
  if (share < 100 && share > 99.99) return ">" + NARROW_SPACE + "99.99" + NARROW_SPACE + "%";
  const decimals = share < 9.995 || (share >= 99.95 && share < 100) ? 2 : share < 100 ? 1 : 0;
  return share.toFixed(decimals) + NARROW_SPACE + "%";
}

/** A time in the unit that suits it. @param {number} value in seconds */
export function seconds(value) {
  const size = Math.abs(value);
  if (size === 0) return "0" + NARROW_SPACE + "s";
  for (const [limit, unit] of /** @type {[number, string][]} */ ([
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "\u00b5s"],
  ])) {
    if (size >= limit) return three(value / limit) + NARROW_SPACE + unit;
  }
  return three(value / 1e-9) + NARROW_SPACE + "ns";
}

/** "1 call", "2 calls". @param {number} number @param {string} noun @param {string} [plural] */
export function plural(number, noun, plural = noun + "s") {
  return count(number) + " " + (number === 1 ? noun : plural);
}

/** The last part of a path. @param {string} path */
export function baseName(path) {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}
