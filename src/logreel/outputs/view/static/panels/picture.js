// Pictures and video at the cursor.

import { button, el, fit, frame, written } from "../dom.js";
import { menu } from "../menu.js";
import { sentence } from "./sentence.js";
import { Overlay } from "./picture/overlay.js";
import { Stills } from "./picture/still.js";
import { Video, able } from "./picture/video.js";

/** Pictures side by side at most, and how many to begin with. */
const MOST = 6, FIRST = 2;

export function create(context, settings) {
  return new PicturePanel(context, settings);
}

class PicturePanel {
  constructor(context, { chosen, drawn }) {
    this.title = "Pictures";
    this.drawn = { clouds: [], detections: null, colour: "", ...drawn };
    this.context = context;
    this.chosen = Array.isArray(chosen) ? chosen : null;
    this.shots = new Map();
  }

  async mount(element) {
    const { bus } = this.context;
    this.element = element;
    this.place = el("div", { class: "pictures" });
    element.replaceChildren(el("div", { class: "tool" },
      button("Channels", "Choose pictures", (event) => menu(event.currentTarget, this.#choices())),
      this.draws = button("Draw", "Choose what is drawn on pictures", (event) => menu(event.currentTarget, this.#drawings()), { hidden: true }), el("span", { class: "spring" }),
      button("‹", "Picture before", () => this.#step(-1)), button("›", "Next picture", () => this.#step(1))), this.place);
    this.offs = [
      bus.on("shift", () => this.#ask()),
      bus.on("clock", () => this.#ask()),
      bus.on("grown", ({ log }) => { for (const shot of this.shots.values()) if (shot.source.log === log) { shot.reader.forget(); shot.ask(); } }),
    ];
    try {
      await this.#sources();
    } catch (error) {
      return this.#say(error.message, true);
    }
    return this.#arrange();
  }

  settings() {
    const { clouds, detections, colour } = this.drawn;
    return { chosen: this.chosen ?? undefined, drawn: clouds.length || detections || colour ? this.drawn : undefined };
  }

  resize() {
    this.#columns();
    this.#ask();
  }

  window() {
    if (this.context.view.cursor == null) this.#ask();
  }

  cursor() {
    this.#ask();
  }

  dispose() {
    for (const off of this.offs ?? []) off();
    for (const shot of this.shots.values()) shot.dispose();
  }

  async #sources() {
    const { api, logs } = this.context;
    const lists = await Promise.all(logs.map(async ({ id: log }) => (await api.get(`/api/logs/${log}/pictures`)).map((one) => ({ ...one, log, key: `${log} ${one.topic}` }))));
    this.all = lists.flat();
    this.draws.hidden = !this.all.some(({ clouds, detections, solids }) => clouds.length || detections.length || solids.length);
  }

  /** Return a canvas with the pictures as they are seen, with what is drawn on them, in `scale` pixels for each of the screen. */
  still(scale) {
    const shots = [...this.shots.values()].filter(({ t }) => t != null), { left, top, width, height } = this.place.getBoundingClientRect();
    if (!shots.length) return null;
    const sheet = document.createElement("canvas"), pen = fit(sheet, width, height, scale);
    for (const { image, canvas, overlay } of shots) {
      const box = image.getBoundingClientRect();
      for (const one of [canvas, overlay.canvas].filter(({ hidden }) => !hidden)) {
        const share = Math.min(box.width / one.width, box.height / one.height), wide = share * one.width, high = share * one.height;
        pen.drawImage(one, box.left - left + (box.width - wide) / 2, box.top - top + (box.height - high) / 2, wide, high);
      }
    }
    written(pen, this.place, this.place.querySelectorAll("figcaption > span"));
    return sheet;
  }

  #say(text, bad = false) {
    this.place.replaceChildren(el("div", { class: "shot" }, sentence(text, bad)));
    this.element.dataset.ready = bad ? "error" : "empty";
  }

  #wanted() {
    const chosen = this.chosen ? this.all.filter(({ key }) => this.chosen.includes(key)) : this.all.slice(0, FIRST);
    return chosen.slice(0, MOST);
  }

  #choices() {
    const shown = new Set(this.#wanted().map(({ key }) => key)), several = this.context.logs.length > 1;
    if (!this.all?.length) return [{ text: "The log holds no pictures." }];
    return this.all.map((one) => ({
      text: `${several ? `${this.context.log(one.log).name}: ` : ""}${one.topic} (${one.count.toLocaleString("en")} ${one.codec})`, on: shown.has(one.key),
      run: () => {
        if (!shown.delete(one.key)) shown.add(one.key);
        if (shown.size > MOST) this.context.say(`At most ${MOST} are shown at once.`);
        this.chosen = [...shown].slice(0, MOST);
        this.context.state.changed();
        this.#arrange();
      },
    }));
  }

  /** What can be drawn on the pictures: points, by their distance or a field, and detections. */
  #drawings() {
    const sources = [...this.shots.values()].map(({ source }) => source), all = (name) => [...new Set(sources.flatMap((one) => one[name]))];
    const { clouds, colour } = this.drawn, detections = this.drawn.detections ?? all("detections"), fields = new Set([...this.shots.values()].flatMap((shot) => shot.fields));
    const toggled = (list, topic) => (list.includes(topic) ? list.filter((one) => one !== topic) : [...list, topic]);
    const entry = (text, on, change) => ({ text, on, run: () => {
      this.drawn = { ...this.drawn, ...change };
      for (const shot of this.shots.values()) shot.redraw(this.drawn);
      this.context.state.changed();
    } });
    if (colour) fields.add(colour);
    return [{ text: "Points" }, ...all("clouds").map((topic) => entry(topic, clouds.includes(topic), { clouds: toggled(clouds, topic) })),
      ...(clouds.length ? [null, { text: "Colour" }, entry("distance", !colour, { colour: "" }), ...[...fields].map((name) => entry(name, colour === name, { colour: name }))] : []),
      null, { text: "Detections" }, ...[...all("detections"), ...all("solids")].map((topic) => entry(topic, detections.includes(topic), { detections: toggled(detections, topic) }))]
      .filter((one, i, list) => one?.run || one === null || list[i + 1]?.run);
  }

  #arrange() {
    const wanted = this.#wanted(), keys = new Set(wanted.map(({ key }) => key));
    for (const [key, shot] of this.shots) if (!keys.has(key)) { shot.dispose(); this.shots.delete(key); }
    if (!this.all.length) return this.#say("The log holds no pictures.");
    if (!wanted.length) return this.#say("Choose pictures under Channels.");
    for (const source of wanted) if (!this.shots.has(source.key)) this.shots.set(source.key, new Shot(this.context, source, this.drawn, () => this.#arrived()));
    this.place.replaceChildren(...wanted.map(({ key }) => this.shots.get(key).element));
    this.#columns();
    return this.#ask();
  }

  /** Arrange the pictures so that they are as large as possible, taking them as 4 : 3. */
  #columns() {
    const n = this.shots.size, { clientWidth: width, clientHeight: height } = this.place;
    if (!n || !width) return;
    const size = (columns) => Math.min(width / columns, (height / Math.ceil(n / columns)) * 4 / 3);
    const best = [1, 2, 3].reduce((a, b) => (size(b) > size(a) ? b : a));
    this.place.style.gridTemplateColumns = `repeat(${Math.min(best, n)}, minmax(0, 1fr))`;
    this.place.style.gridAutoRows = "minmax(0, 1fr)";
  }

  #ask() {
    for (const shot of this.shots.values()) shot.ask();
  }

  #arrived() {
    this.element.dataset.ready = "yes";
    this.element.dataset.row = [...this.shots.values()].map(({ t }) => t ?? "").join(",");
  }

  #step(count) {
    const { time, view } = this.context, [shot] = this.shots.values();
    if (shot?.t == null) return;
    const to = count > 0 ? shot.next : shot.t - 1;
    if (to === null) return;
    view.setCursor(time.toAxis(shot.source.log, to));
    view.reveal();
  }
}

/** One channel of pictures. */
class Shot {
  constructor(context, source, drawn, arrived) {
    this.context = context;
    this.source = source;
    this.arrived = arrived;
    this.canvas = el("canvas", { role: "img", "aria-label": `Picture of ${source.topic} at the cursor` });
    this.overlay = new Overlay(context.api, source, drawn);
    this.fields = [];
    this.image = el("div", { class: "image" }, this.canvas, this.overlay.canvas, this.overlay.legend);
    this.about = el("span", {});
    this.age = el("span", { class: "age" });
    this.element = el("figure", { class: "shot" }, this.image, el("figcaption", {}, el("span", { class: "name", title: source.topic }, source.topic), this.about, this.age));
    this.stills = new Stills(context.api, source.log, source.topic);
    this.reader = source.kind === "video" && able() ? new Video(context.api, source.log, source.topic) : this.stills;
    this.ask = frame(() => this.#load());
  }

  dispose() {
    this.gone = true;
    this.stills.dispose();
    if (this.reader !== this.stills) this.reader.dispose();
  }

  async #load() {
    if (this.gone) return;
    // While an answer is under way the newest cursor waits.
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const { time, view } = this.context, at = time.toLog(this.source.log, view.cursor ?? view.window.from);
    const width = Math.round(Math.max(64, this.image.clientWidth) * (devicePixelRatio || 1));
    try {
      this.#show(await this.#get(at, width), at);
      await this.#draw();
      if (this.reader === this.stills) this.stills.ahead(this, width);
    } catch (error) {
      if (!this.gone) this.#say(error.message);
    }
    this.busy = false;
    if (!this.gone) this.arrived();
    if (this.again) { this.again = false; this.ask(); }
  }

  /** Draw something else on the picture. */
  redraw(drawn) {
    this.overlay.choose(drawn);
    this.ask();
  }

  async #draw() {
    const { overlay, canvas, t } = this;
    overlay.canvas.hidden = overlay.legend.hidden = !overlay.wanted;
    if (!overlay.wanted) return;
    try {
      const found = await overlay.get(t);
      if (this.gone || this.t !== t) return;
      this.fields = found.fields;
      // Converted pictures may have lost rows and columns: boxes are in pixels of the log.
      const size = this.size ?? canvas;
      overlay.draw(found, size, (devicePixelRatio || 1) * Math.min(this.image.clientWidth / size.width, this.image.clientHeight / size.height));
    } catch (error) {
      overlay.canvas.hidden = true;
      overlay.legend.replaceChildren(error.message);
    }
  }

  async #get(at, width) {
    if (this.reader === this.stills) return this.stills.get(at, width);
    try {
      return await this.reader.get(at);
    } catch (error) {
      // Before the first key frame the server says the same in better words.
      this.failures = (this.failures ?? 0) + 1;
      if (this.failures > 2 || error.name === "NotSupportedError" || /does not decode/.test(error.message)) { this.reader.dispose(); this.reader = this.stills; }
      return this.stills.get(at, width);
    }
  }

  #show({ t, next, bitmap, note, size }, at) {
    if (this.gone) return;
    const width = bitmap.displayWidth ?? bitmap.width, height = bitmap.displayHeight ?? bitmap.height;
    Object.assign(this.canvas, { width, height });
    this.canvas.getContext("2d").drawImage(bitmap, 0, 0, width, height);
    this.canvas.className = width < this.image.clientWidth / 2 ? "sharp" : "";
    this.image.querySelector(".sentence")?.remove();
    this.canvas.hidden = false;
    const [wide, high] = (size ?? "").split("x").map(Number);
    this.size = wide > 0 && high > 0 ? { width: wide, height: high } : null;
    const stated = /^[1-9]\d*x[1-9]\d*$/.test(size) ? size.replace("x", " × ") : `${width} × ${height}`;
    this.about.textContent = [stated, note].filter(Boolean).join(" · ");
    this.about.title = this.about.textContent;
    const { time } = this.context, age = (at - t) / 1e9;
    this.age.textContent = age > 1 ? `${age.toFixed(1)} s ago` : time.full(time.toAxis(this.source.log, t));
    [this.t, this.next] = [t, next];
    this.element.dataset.t = t;
  }

  #say(text) {
    this.canvas.hidden = this.overlay.canvas.hidden = this.overlay.legend.hidden = true;
    this.about.textContent = this.age.textContent = "";
    this.t = null;
    this.image.querySelector(".sentence")?.remove();
    this.image.append(sentence(text));
    delete this.element.dataset.t;
  }
}
