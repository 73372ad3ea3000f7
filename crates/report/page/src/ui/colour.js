/**
 * The colour of a function: always the same for the same name, in every view and in
 * both runs of a comparison. Lightness is fixed by the theme, so that labels keep their
 * contrast on every hue.
 */

const HUES = 29;

/** FNV-1a. @param {string} text */
export function hash(text) {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    value ^= text.charCodeAt(at);
    value = Math.imul(value, 0x01000193);
  }
  return value >>> 0;
}

/** @param {string} name @param {boolean} isDark */
export function functionColour(name, isDark) {
  const value = hash(name);
  const hue = Math.round(((value % HUES) * 360) / HUES);
  const shade = (value >>> 8) % 3;
  return isDark
    ? `hsl(${hue} ${22 + 4 * shade}% ${25 + 3 * shade}%)`
    : `hsl(${hue} ${40 + 5 * shade}% ${85 - 3 * shade}%)`;
}
