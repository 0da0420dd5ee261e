// Elements are made here, and texts enter the page as text nodes only.

/**
 * Return a new element.
 * @param {string} tag
 * @param {Object} [attributes] `class`, `dataset`, `on` ({event: listener}), ARIA and other attributes; null and false are left out
 * @param {...(Node|string|number|null)} children strings become text nodes
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name === "on") for (const [kind, listener] of Object.entries(value)) element.addEventListener(kind, listener);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child != null) element.append(child instanceof Node ? child : String(child));
  return element;
}

/** Return a text of a log without the sequences that colour terminals, on one line. */
export function plain(text) {
  return text.replace(/\x1b\[[0-9;]*[A-Za-z]/g, "").replace(/[\x00-\x1f\x7f-\x9f]+/g, " ");
}

/** Return a button with a text that is visible and a title that explains it. */
export function button(text, title, click, attributes = {}) {
  return el("button", { type: "button", title, "aria-label": title, ...attributes, on: { click } }, text);
}

/** Return the value of a CSS variable of the page, such as `--accent`. */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Give a canvas the size of its box in device pixels, or in `ratio` pixels for each of CSS; return its context, scaled to CSS pixels. */
export function fit(canvas, width, height, ratio = devicePixelRatio || 1) {
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** Write the texts of elements at their places in `base` onto a picture of it. */
export function written(pen, base, elements) {
  const { left, top } = base.getBoundingClientRect();
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const one of elements) {
    const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    pen.font = `${style.fontSize} system-ui, sans-serif`;
    pen.fillStyle = style.color;
    if (box.width) pen.fillText(one.textContent, box.left - left, box.top - top + box.height / 2, box.width + 1);
  }
}

/** Return a function that calls `work` at most once for each frame, with the arguments of the last call. */
export function frame(work) {
  let waiting = null;
  return (...values) => {
    if (waiting === null) requestAnimationFrame(() => { const last = waiting; waiting = null; work(...last); });
    waiting = values;
  };
}

/** Follow a pointer from its press to its release: `move(event)` for each motion, `end(event, moved)` at last. */
export function drag(event, move, end = () => {}) {
  const element = event.currentTarget, { clientX, clientY } = event;
  let moved = false;
  element.setPointerCapture(event.pointerId);
  const onMove = (now) => {
    moved ||= Math.hypot(now.clientX - clientX, now.clientY - clientY) > 3;
    if (moved) move(now);
  };
  const onEnd = (now) => {
    for (const [kind, listener] of listeners) element.removeEventListener(kind, listener);
    end(now, moved);
  };
  const listeners = [["pointermove", onMove], ["pointerup", onEnd], ["pointercancel", onEnd]];
  for (const [kind, listener] of listeners) element.addEventListener(kind, listener);
}

/** Hand a blob to the browser as a file. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
