/**
 * Wheel, pointer, fingers and keys of a stage, turned into what the stage offers.
 *
 * Keys: W and S or + and - zoom, A and D pan, 0 shows all. Arrows walk from slice to
 * slice once one is selected and pan before that; with Shift they always pan.
 */

/** A pointer that moved less than this clicked. */
const CLICK = 4;

/** @typedef {import("./stage.js").Stage} Stage */

/** @param {Stage} stage @param {HTMLCanvasElement} canvas */
export function listen(stage, canvas) {
  canvas.addEventListener("wheel", (event) => wheel(stage, canvas, event), { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key(stage, event.key, event.shiftKey)) event.preventDefault();
  });
  canvas.addEventListener("dblclick", (event) => {
    stage.selectAt(event.offsetX, event.offsetY);
    stage.zoomToSelection();
  });
  pointers(stage, canvas);
}

/** @param {Stage} stage @param {HTMLCanvasElement} canvas @param {WheelEvent} event */
function wheel(stage, canvas, event) {
  event.preventDefault();
  // Lines and pages in pixels.
  const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? canvas.clientHeight : 1;
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (sideways) stage.panBy(event.deltaX * unit, 0);
  else if (event.shiftKey) stage.panBy(0, event.deltaY * unit);
  else stage.zoomAt(2 ** ((event.deltaY * unit) / (event.ctrlKey ? 60 : 240)), event.offsetX);
}

/** @param {Stage} stage @param {HTMLCanvasElement} canvas */
function pointers(stage, canvas) {
  /** @type {Map<number, {x: number, y: number}>} fingers that are down */
  const down = new Map();
  let travel = 0;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    travel = down.size > 1 ? CLICK : 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) return stage.hoverAt(event.offsetX, event.offsetY);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    const dx = event.offsetX - last.x;
    const dy = event.offsetY - last.y;
    travel += Math.abs(dx) + Math.abs(dy);
    if (other) pinch(stage, other.x, last.x, event.offsetX);
    else if (travel >= CLICK) stage.panBy(-dx, -dy);
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  });
  const up = (/** @type {PointerEvent} */ event) => {
    if (!down.delete(event.pointerId)) return;
    if (travel < CLICK && event.type === "pointerup") stage.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => stage.hoverAt(-1, -1));
}

/**
 * What is under both fingers stays there.
 * @param {Stage} stage @param {number} fixed @param {number} before @param {number} after
 */
function pinch(stage, fixed, before, after) {
  const old = Math.max(20, Math.abs(before - fixed));
  const now = Math.max(20, Math.abs(after - fixed));
  stage.zoomAt(old / now, fixed);
}

/** @param {Stage} stage @param {string} name @param {boolean} shift @returns {boolean} known */
function key(stage, name, shift) {
  const step = stage.width * 0.15;
  switch (name) {
    case "w":
    case "W":
    case "+":
    case "=":
      stage.zoomAt(0.7, stage.focusX());
      return true;
    case "s":
    case "S":
    case "-":
    case "_":
      stage.zoomAt(1 / 0.7, stage.focusX());
      return true;
    case "a":
    case "A":
      stage.panBy(-step, 0);
      return true;
    case "d":
    case "D":
      stage.panBy(step, 0);
      return true;
    case "0":
    case "Home":
      stage.showAll();
      return true;
    case "PageUp":
    case "PageDown":
      stage.panBy(0, (name === "PageUp" ? -0.8 : 0.8) * stage.height);
      return true;
    case "Enter":
    case " ":
      if (stage.selection) stage.zoomToSelection();
      else stage.selectFirst();
      return true;
    case "Escape":
      stage.select(null);
      return true;
    default:
      return arrow(stage, name, shift, step);
  }
}

/** @param {Stage} stage @param {string} name @param {boolean} shift @param {number} step */
function arrow(stage, name, shift, step) {
  const directions = /** @type {Record<string, [number, number, "parent"|"child"|"next"|"previous"]>} */ ({
    ArrowLeft: [-1, 0, "previous"],
    ArrowRight: [1, 0, "next"],
    ArrowUp: [0, -1, "parent"],
    ArrowDown: [0, 1, "child"],
  });
  const direction = directions[name];
  if (!direction) return false;
  const [x, y, move] = direction;
  if (stage.selection && !shift) stage.walk(move);
  else if (move === "child" && !shift) stage.selectFirst();
  else stage.panBy(x * step, y * 40);
  return true;
}
