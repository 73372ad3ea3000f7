/**
 * Elements without markup in strings. Names in a report come from programs and traces,
 * so text only ever becomes a text node: a symbol `<script>` is shown, not run.
 * Styles are set through the style object, which the content security policy allows.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node|string|number|null|undefined|false|any[]} Child a list has children too
 * @typedef {Record<string, any>} Attributes `on`: listeners by event; `style`: properties;
 *   `true` sets an empty attribute; `false`, `null` and `undefined` leave it out.
 */

/** @param {Element} element @param {Child[]} children */
export function append(element, ...children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, ...child);
    else if (child instanceof Node) element.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) {
      element.appendChild(document.createTextNode(String(child)));
    }
  }
}

/** @param {any} element @param {Attributes} attributes */
function decorate(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * An HTML element.
 * @param {string} tag @param {Attributes|null} attributes @param {Child[]} children
 * @returns {any}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  if (attributes) decorate(element, attributes);
  append(element, ...children);
  return element;
}

/**
 * An SVG element.
 * @param {string} tag @param {Attributes|null} attributes @param {Child[]} children
 * @returns {any}
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  if (attributes) decorate(element, attributes);
  append(element, ...children);
  return element;
}

/** Replaces what an element contains. @param {Element} element @param {Child[]} children */
export function fill(element, ...children) {
  element.textContent = "";
  append(element, ...children);
}

/** Runs `action` once per animation frame, however often it is asked for. @param {() => void} action */
export function oncePerFrame(action) {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      action();
    });
  };
}

/**
 * Runs `action` when it has not been asked for during `milliseconds`.
 * @param {number} milliseconds @param {() => void} action
 */
export function settle(milliseconds, action) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}
