// The palette: one box that finds fields and commands (Ctrl-K).

import { el, frame } from "./dom.js";
import { nameParts, search } from "./fuzzy.js";
import { panels, toggleTheme } from "./head.js";

export function find(context) {
  const input = el("input", { type: "search", placeholder: "Find a field, a channel or a command …", role: "combobox", "aria-expanded": "true", "aria-controls": "found", "aria-label": "Find a field, a channel or a command", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" });
  const list = el("div", { class: "rows", role: "listbox", id: "found", "aria-label": "Found" });
  const dialog = el("dialog", { class: "palette", "aria-label": "Find" }, input, list);
  document.body.append(dialog);
  let items = [], found = [], at = 0;

  function commands() {
    const { view, plots } = context;
    return [
      ["Show the whole log", () => view.all()], ["Close the chosen panel", () => plots.remove()],
      ["Light or dark", () => toggleTheme(context)], ["Keys", () => context.help()],
      ...panels(context).filter((one) => one && !one.off).map(({ text, run }) => [text, run]),
      ...context.takeaway.entries().filter((one) => one?.run && !one.off).map(({ text, run }) => [text, run]),
      ...["findings", "problems", "parameters", "message"].map((kind) => [`Show ${kind}`, () => context.lower?.choose(kind)]),
    ].map(([text, run]) => ({ text, aside: "command", run }));
  }

  async function fields() {
    const all = [];
    for (const { id, name } of context.logs) {
      for (const channel of await context.data.channels(id)) {
        all.push({ text: channel.topic, aside: `${channel.type} · show in the tree`, run: () => context.bus.send("reveal", { log: id, topic: channel.topic }) });
        for (const field of channel.fields) {
          if (field.number === false) continue;
          const aside = [field.items == null ? "" : "array", field.unit, field.text, context.logs.length > 1 ? name : ""].filter(Boolean).join(" · ") || field.type;
          const series = { topic: channel.topic, field: field.path, ...(id === context.logs[0].id ? {} : { log: id }) };
          const run = field.items == null ? (event) => context.plots.plot(series, { fresh: event.shiftKey }) : () => context.plots.add("array", series);
          all.push({ text: `${channel.topic}.${field.path}`, topic: channel.topic, aside, run });
        }
      }
    }
    return all;
  }

  const show = frame(() => {
    found = search(input.value, items, (item) => item.text, 60);
    at = 0;
    list.replaceChildren(...found.map(({ item, places }, i) => el("div", {
      class: "item", role: "option", id: `found-${i}`, "aria-selected": i === 0, "aria-label": `${item.text}, ${item.aside}`,
      on: { click: (event) => run(i, event), pointermove: () => choose(i) },
    }, el("span", { class: "label" }, nameParts(item.text, { topic: item.topic, places })), el("span", { class: "aside" }, item.aside))));
    if (!found.length) list.append(el("div", { class: "item head" }, "Nothing is called like that."));
    list.dataset.for = input.value;
    choose(0);
  });

  function choose(i) {
    if (!found.length) return;
    list.children[at]?.setAttribute("aria-selected", "false");
    at = (i + found.length) % found.length;
    list.children[at].setAttribute("aria-selected", "true");
    list.children[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `found-${at}`);
  }

  function run(i, event) {
    dialog.close();
    found[i]?.item.run(event);
  }

  input.addEventListener("input", () => show());
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step) { event.preventDefault(); choose(Math.abs(step) > 1 ? Math.min(Math.max(at + step, 0), found.length - 1) : at + step); }
    if (event.key === "Enter") { event.preventDefault(); run(at, event); }
    // The box would only clear itself.
    if (event.key === "Escape") { event.preventDefault(); dialog.close(); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

  return {
    async open() {
      if (dialog.open) return;
      input.value = "";
      items = commands();
      dialog.showModal();
      show();
      try {
        items = [...await fields(), ...commands()];
      } catch (error) {
        context.say(error.message);
      }
      show();
    },
  };
}
