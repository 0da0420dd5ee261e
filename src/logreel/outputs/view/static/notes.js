// Notes of people on moments and spans of the logs: kept beside a log where the server may write, else in this page.

import { button, el, save } from "./dom.js";

export const COLOURS = { "": "--accent", blue: "--series-1", green: "--series-3", orange: "--series-2", purple: "--series-4", red: "--bad" };

/** What is seen around a note that is shown: shares of its length, and of the log around a moment. */
const AROUND = 0.5, MOMENT = 0.05;

/** Return the first words of a note. */
export function titleOf(note) {
  return note.title || note.text.trim().split("\n")[0];
}

export class Notes {
  /** @param {Object} context */
  constructor(context) {
    this.context = context;
    this.logs = new Map(); // {notes, file, why, problem} by the id of a log
  }

  /** Ask for the notes on all logs. */
  async load() {
    await Promise.all(this.context.logs.map(async ({ id }) => {
      try {
        this.#keep(id, await this.context.api.get(`/api/logs/${id}/notes`));
      } catch (error) {
        this.#keep(id, { notes: [], file: null, why: error.message, problem: "" });
      }
    }));
  }

  #keep(id, answer) {
    const before = this.logs.get(id), told = ({ notes, why, problem }) => notes.length > 0 || Boolean(why || problem);
    this.logs.set(id, answer);
    // Most logs have none: nothing is drawn again for them.
    if (told(answer) || (before && told(before))) this.context.bus.send("notes", id);
  }

  /** Return the notes on a log, by time: [{id, from, to (ns since its start, or null), title, text, author, colour}]. */
  of(id) {
    return this.logs.get(id)?.notes ?? [];
  }

  /** Return why the notes on a log are not written beside it; empty if they are. */
  why(id) {
    return this.logs.get(id)?.why ?? "";
  }

  async #change(id, content, change) {
    const known = this.logs.get(id) ?? { notes: [], file: null, why: "", problem: "" };
    if (!known.why) {
      try {
        this.#keep(id, await this.context.api.post(`/api/logs/${id}/notes`, content));
        return true;
      } catch (error) {
        if (error.status === 400 || error.status === 401) { this.context.say(error.message); return false; }
        known.why = error.message;
      }
    }
    this.#keep(id, { ...known, notes: change(known.notes).toSorted((a, b) => a.from - b.from) });
    this.context.say(`Kept in this page only: ${known.why}. Take away, "Notes as a file", saves them.`);
    return true;
  }

  /** Add a note, or put it in place of the one with its id. */
  put(id, note) {
    const own = { ...note, id: note.id || Date.now().toString(16) };
    return this.#change(id, { put: note }, (notes) => [...notes.filter((one) => one.id !== own.id), own]);
  }

  remove(id, note) {
    return this.#change(id, { remove: note.id }, (notes) => notes.filter((one) => one.id !== note.id));
  }

  /** Show a note: its span with what is around it, or its moment if that is not in sight. */
  show(id, note) {
    const { view, time } = this.context, from = time.toAxis(id, note.from), to = time.toAxis(id, note.to ?? note.from), whole = time.whole();
    if (note.to != null) view.setWindow(from - AROUND * (to - from), to + AROUND * (to - from));
    else if (from < view.window.from || from > view.window.to) view.setWindow(from - MOMENT * (whole.to - whole.from), from + MOMENT * (whole.to - whole.from));
    view.setCursor(from);
  }

  /** Ask for a note at the cursor, or on the window. */
  add(onWindow) {
    const { view, bus, logs, time } = this.context, id = (bus.last("select")?.log && logs.some((one) => one.id === bus.last("select").log)) ? bus.last("select").log : logs[0].id;
    const at = view.cursor ?? bus.last("hover") ?? (view.window.from + view.window.to) / 2;
    const [from, to] = onWindow ? [view.window.from, view.window.to] : [at, null];
    this.edit(id, { from: Math.round(time.toLog(id, from)), to: to == null ? null : Math.round(time.toLog(id, to)), title: "", text: "", author: remembered(), colour: "" });
  }

  /** Open the form for a note. */
  edit(id, note) {
    const { time, logs } = this.context, when = note.to == null ? time.full(time.toAxis(id, note.from)) : `${time.text(time.toAxis(id, note.from))} … ${time.full(time.toAxis(id, note.to))}`;
    const title = el("input", { type: "text", maxlength: 200, value: note.title, "aria-label": "Title" });
    const text = el("textarea", { maxlength: 20000, "aria-label": "Text" }, note.text);
    const author = el("input", { type: "text", maxlength: 200, value: note.author, "aria-label": "Author" });
    const colour = el("select", { "aria-label": "Colour" }, Object.keys(COLOURS).map((name) => el("option", { value: name, selected: name === note.colour }, name || "usual")));
    const row = (label, field) => el("label", {}, el("span", {}, label), field);
    const keep = async () => {
      if (!title.value.trim() && !text.value.trim()) { title.focus(); return; }
      remember(author.value);
      if (await this.put(id, { ...note, title: title.value, text: text.value, author: author.value, colour: colour.value, created: note.created || new Date().toISOString().slice(0, 19) + "Z" })) sheet.close();
    };
    const form = el("form", { class: "inside", method: "dialog", on: { submit: (event) => { event.preventDefault(); keep(); } } },
      el("h2", {}, note.id ? "Change the note" : note.to == null ? "Note at this moment" : "Note on this span"),
      el("p", { class: "faint" }, `${logs.length > 1 ? `${this.context.log(id).name}, ` : ""}${when}${this.why(id) ? `. It stays in this page: ${this.why(id)}.` : `. It is written to ${this.logs.get(id)?.file}.`}`),
      row("Title", title), row("Text", text), row("Author", author), row("Colour", colour),
      el("div", { class: "row" },
        note.id ? button("Remove", "Remove this note", async () => { if (await this.remove(id, note)) sheet.close(); }) : null,
        button("Cancel", "Cancel", () => sheet.close()), button("Keep", "Keep the note", keep, { class: "main" })));
    const sheet = el("dialog", { class: "note", "aria-label": "Note", on: { close: () => sheet.remove() } }, form);
    document.body.append(sheet);
    sheet.showModal();
    title.focus();
  }

  /** Save the notes on each log as the file that belongs beside it. */
  async download() {
    for (const { id, name } of this.context.logs) {
      if (!this.of(id).length) continue;
      try {
        const response = await this.context.api.fetch(`/api/logs/${id}/notes`, {}, { content: { file: this.of(id) } });
        save(await response.blob(), `${name}.notes.json`);
      } catch (error) {
        this.context.say(error.message);
      }
    }
  }
}

function remembered() {
  try { return localStorage.getItem("logreel-author") ?? ""; } catch { return ""; }
}

function remember(author) {
  try { localStorage.setItem("logreel-author", author); } catch { /* a page without storage */ }
}
