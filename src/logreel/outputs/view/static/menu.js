// Menus that open at a button (arrow keys move, Escape closes), and a box that asks for a name.

import { button, el } from "./dom.js";

let open = null;

/**
 * Show a menu under an element.
 * @param {HTMLElement} anchor
 * @param {Array<null|{text: string, run?: Function, off?: boolean, on?: boolean}>} entries null is a line; without `run` a heading
 */
export function menu(anchor, entries) {
  open?.();
  const box = el("div", { class: "menu", role: "menu" });
  for (const entry of entries) {
    if (entry === null) { if (box.lastChild && box.lastChild.tagName !== "HR") box.append(el("hr")); continue; }
    if (!entry.run) { box.append(el("div", { class: "head" }, entry.text)); continue; }
    const item = el("button", {
      type: "button", role: entry.on == null ? "menuitem" : "menuitemcheckbox", "aria-checked": entry.on == null ? null : String(entry.on),
      on: { click: () => { close(); entry.run(); } },
    }, `${entry.on == null ? "" : entry.on ? "✓ " : "   "}${entry.text}`);
    item.disabled = Boolean(entry.off);
    box.append(item);
  }
  const outside = (event) => { if (!box.contains(event.target)) close(); };
  function close() {
    removeEventListener("pointerdown", outside, true);
    const inside = box.contains(document.activeElement);
    box.remove();
    open = null;
    if (inside) anchor.focus();
  }
  open = close;
  box.addEventListener("keydown", (event) => {
    const items = [...box.querySelectorAll("button:not(:disabled)")], at = items.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    event.stopPropagation();
    if (step) { event.preventDefault(); items[(at + step + items.length) % items.length]?.focus(); }
    if (event.key === "Escape" || event.key === "Tab") { event.preventDefault(); close(); }
  });
  document.body.append(box);
  const place = anchor.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(place.left, innerWidth - box.offsetWidth - 4))}px`;
  box.style.top = `${place.bottom + box.offsetHeight + 4 > innerHeight ? Math.max(4, place.top - box.offsetHeight - 2) : place.bottom + 2}px`;
  addEventListener("pointerdown", outside, true);
  box.querySelector("button:not(:disabled)")?.focus();
}

/** Ask for a name; fulfilled with null if there is none. */
export function ask(text, value = "") {
  return new Promise((done) => {
    const input = el("input", { type: "text", value, maxlength: 80, "aria-label": text, spellcheck: "false" });
    const form = el("form", { class: "inside", method: "dialog", on: { submit: (event) => { event.preventDefault(); dialog.close(input.value.trim()); } } },
      el("h2", {}, text), input, el("div", { class: "row" }, button("Cancel", "Cancel", () => dialog.close("")), el("button", { class: "main" }, "Save")));
    const dialog = el("dialog", { "aria-label": text, on: { cancel: () => { dialog.returnValue = ""; }, close: () => { dialog.remove(); done(dialog.returnValue || null); } } }, form);
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}
