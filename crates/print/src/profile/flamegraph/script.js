"use strict";
// Zoom, search and keys. Sizes are those of svg.rs.
(() => {
  const svg = document.currentScript?.closest("svg") ?? document.documentElement;
  const isPage = svg === document.documentElement;
  const MARGIN = 10, INDENT = 3, LETTER = 7.3, TITLE_LETTER = 10, LEAST_COLUMNS = 3, CONTROLS = 520;

  // Frames are in the order of a walk: each after its caller.
  const frames = [], path = [];
  for (const group of svg.querySelectorAll(".frame")) {
    const [title, rect, text] = group.children;
    const [name, details] = title.textContent.split("\n");
    const depth = Number(group.dataset.depth), start = Number(group.dataset.start);
    const frame = { group, rect, text, name, details, depth, start, end: start + Number(group.dataset.cost) };
    frame.caller = path[depth - 1];
    path[depth] = frame;
    frames.push(frame);
    group.frame = frame;
  }
  const all = frames[0];
  let zoomed = all, current = all;

  /** The start of a text that fits into so many columns. */
  function cut(text, most) {
    let taken = 0, kept = "", prefix = "";
    for (const letter of text) {
      if (taken < most) prefix = kept;
      taken += letter < "\u1100" ? 1 : 2;
      if (taken > most) return prefix + "…";
      kept += letter;
    }
    return text;
  }

  function element(space, name, attributes, parent) {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return parent.appendChild(made);
  }

  const head = svg.querySelector(".head"), title = head.querySelector(".title"), about = head.querySelector(".about");
  const fullTitle = svg.querySelector("title").textContent, everything = about.textContent;
  const XHTML = "http://www.w3.org/1999/xhtml";
  const foreign = element(svg.namespaceURI, "foreignObject", { y: 2, width: CONTROLS, height: 30 }, head);
  const controls = element(XHTML, "div", { class: "controls" }, foreign);
  const found = element(XHTML, "output", {}, controls);
  const search = element(XHTML, "input", { type: "search", placeholder: "Search ( / )", "aria-label": "Search functions; /…/ is a regular expression" }, controls);
  const reset = element(XHTML, "button", { type: "button", title: "Escape" }, controls);
  reset.textContent = "Reset zoom";

  function label(frame, x, width) {
    const columns = Math.floor((width - 2 * INDENT) / LETTER);
    const text = columns >= LEAST_COLUMNS ? cut(frame.name, columns) : "";
    if (text && !frame.text) {
      const y = Number(frame.rect.getAttribute("y")) + 13;
      frame.text = element(svg.namespaceURI, "text", { y }, frame.group);
    }
    if (!frame.text) return;
    frame.text.textContent = text;
    frame.text.setAttribute("x", x + INDENT);
  }

  function draw() {
    const width = Math.max(svg.getBoundingClientRect().width, CONTROLS + 2 * MARGIN);
    svg.setAttribute("viewBox", `0 0 ${width} ${svg.getAttribute("height")}`);
    foreign.setAttribute("x", width - CONTROLS - MARGIN);
    title.textContent = cut(fullTitle, (width - CONTROLS - 3 * MARGIN) / TITLE_LETTER);
    const scale = (width - 2 * MARGIN) / (zoomed.end - zoomed.start);
    for (const frame of frames) {
      const isBelow = frame.depth < zoomed.depth;
      frame.isInside = !isBelow && frame.start >= zoomed.start && frame.end <= zoomed.end;
      frame.isShown = frame.isInside || (isBelow && frame.start <= zoomed.start && frame.end >= zoomed.end);
      frame.group.style.display = frame.isShown ? "" : "none";
      if (!frame.isShown) continue;
      frame.group.classList.toggle("outside", isBelow);
      const from = Math.max(frame.start, zoomed.start), to = Math.min(frame.end, zoomed.end);
      const x = MARGIN + (from - zoomed.start) * scale;
      frame.rect.setAttribute("x", x);
      frame.rect.setAttribute("width", (to - from) * scale);
      label(frame, x, (to - from) * scale);
    }
    reset.disabled = zoomed === all;
    mark();
  }

  /** What a name is compared with: text in any case, or a regular expression. */
  function wanted() {
    const pattern = /^\/(.+)\/$/.exec(search.value);
    if (!pattern) {
      const text = search.value.toLowerCase();
      return (name) => text !== "" && name.toLowerCase().includes(text);
    }
    const expression = new RegExp(pattern[1], "i");
    return (name) => expression.test(name);
  }

  /** Marks the frames that are searched for, and tells their share of what is shown. */
  function mark() {
    let isHit = () => false, message = "";
    try {
      isHit = wanted();
    } catch {
      message = "not a regular expression";
    }
    // A hit inside another is counted once.
    let hits = 0, cost = 0, end = 0;
    for (const frame of frames) {
      frame.isHit = isHit(frame.name);
      frame.group.classList.toggle("hit", frame.isHit);
      if (!frame.isHit || !frame.isInside) continue;
      hits += 1;
      if (frame.start < end) continue;
      cost += frame.end - frame.start;
      end = frame.end;
    }
    const share = (100 * cost) / (zoomed.end - zoomed.start);
    if (search.value && !message) message = `${hits} ${hits === 1 ? "frame" : "frames"}, ${share.toFixed(2)} %`;
    found.textContent = message;
  }

  function zoom(frame) {
    zoomed = frame;
    draw();
    if (!current.isShown) select(frame, false);
  }

  /** The frame that Tab reaches. */
  function select(frame, isFocused = true) {
    current.group.removeAttribute("tabindex");
    current.group.removeAttribute("role");
    current = frame;
    frame.group.setAttribute("tabindex", 0);
    frame.group.setAttribute("role", "button");
    if (isFocused) frame.group.focus();
  }

  function tell(frame) {
    const width = svg.viewBox.baseVal.width - 2 * MARGIN;
    about.textContent = frame ? cut(`${frame.name}: ${frame.details}`, width / LETTER) : everything;
  }

  /** The next shown frame for which `test` holds, in this direction. */
  function next(step, test) {
    for (let at = frames.indexOf(current) + step; frames[at]; at += step) {
      if (frames[at].isShown && test(frames[at])) return frames[at];
    }
  }

  const moves = {
    ArrowUp: () => next(1, (frame) => frame.caller === current),
    ArrowDown: () => current.caller,
    ArrowLeft: () => next(-1, (frame) => frame.depth === current.depth),
    ArrowRight: () => next(1, (frame) => frame.depth === current.depth),
    n: () => next(1, (frame) => frame.isHit),
    N: () => next(-1, (frame) => frame.isHit),
  };

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const frame = event.target.frame;
    if (event.target === search) {
      if (event.key === "Escape") search.value = "";
      else if (event.key === "Enter") select(frames.find((one) => one.isHit && one.isInside) ?? current);
      else return;
      mark();
    } else if (event.key === "/") search.focus();
    else if (event.key === "Escape") zoom(all);
    else if (frame && (event.key === "Enter" || event.key === " ")) zoom(frame);
    else if (frame && Object.hasOwn(moves, event.key)) select(moves[event.key]() ?? current);
    else return;
    event.preventDefault();
  }

  const frameOf = (event) => event.target.closest?.(".frame")?.frame;
  svg.addEventListener("click", (event) => {
    const frame = frameOf(event);
    if (!frame) return;
    select(frame);
    zoom(frame);
  });
  svg.addEventListener("pointerover", (event) => tell(frameOf(event)));
  svg.addEventListener("pointerleave", () => tell());
  svg.addEventListener("focusin", (event) => tell(frameOf(event)));
  (isPage ? window : svg).addEventListener("keydown", press);
  search.addEventListener("input", mark);
  reset.addEventListener("click", () => zoom(all));
  window.addEventListener("resize", draw);

  svg.setAttribute("width", "100%");
  svg.setAttribute("role", "group");
  svg.classList.add("live");
  if (isPage) {
    // The head stays in sight, and so does the frame of everything at first.
    window.addEventListener("scroll", () => head.setAttribute("transform", `translate(0 ${window.scrollY})`));
    window.scrollTo(0, Number(svg.getAttribute("height")));
  }
  select(all, false);
  draw();
})();
