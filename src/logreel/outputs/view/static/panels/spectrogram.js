// The power of each frequency of a field over time.

import { lengthPrefixed } from "../api.js";
import { RAMP } from "../colours.js";
import { css, el, fit, frame } from "../dom.js";
import { nameOf, short, wish } from "../series.js";
import { axes, EDGE } from "./axes.js";
import { LEFT, RIGHT } from "./plot.js";
import { STEPS } from "../time.js";
import { sentence } from "./sentence.js";

export function create(context, settings) {
  return new Spectrogram(context, settings);
}

class Spectrogram {
  constructor(context, settings) {
    this.context = context;
    const { title = "", kind: _kind, height: _height, ...wanted } = settings ?? {};
    this.given = title;
    this.wanted = wanted.topic ? wanted : null;
    this.later = frame(() => this.#load());
    this.draw = frame(() => this.#draw());
  }

  get title() {
    return this.given || (this.wanted ? `Spectrogram of ${nameOf(this.wanted)}` : "Spectrogram");
  }

  mount(element) {
    this.element = element;
    this.sheet = el("canvas", { role: "img" });
    element.replaceChildren(this.sheet);
    const { bus, view } = this.context;
    this.offs = [bus.on("theme", () => this.draw()), bus.on("grown", () => this.later())];
    this.sheet.addEventListener("click", (event) => view.setCursor(this.from + ((event.offsetX - LEFT) / (this.size[0] - LEFT - RIGHT)) * (this.to - this.from)));
    this.sheet.addEventListener("wheel", (event) => {
      event.preventDefault();
      view.zoom(1.0018 ** -event.deltaY, this.from + ((event.offsetX - LEFT) / (this.size[0] - LEFT - RIGHT)) * (this.to - this.from));
    }, { passive: false });
    this.sheet.addEventListener("dblclick", () => view.all());
    this.context.title(this.title);
    this.sheet.setAttribute("aria-label", this.title);
    if (!this.wanted) this.#say("Drag a field here to see its frequencies.");
  }

  settings() {
    return { ...(this.given ? { title: this.given } : {}), ...this.wanted };
  }

  series() {
    return this.wanted ? [{ ...this.wanted, log: this.wanted.log ?? this.context.logs[0].id }] : [];
  }

  drop(series) {
    this.wanted = series;
    this.given = "";
    this.context.title(this.title);
    this.context.state.changed();
    this.later();
  }

  menu() {
    return [{ text: "Save as PNG", run: () => this.context.takeaway.png(this) }];
  }

  resize(width, height) {
    this.size = [width, height];
    this.draw();
    this.later();
  }

  window(from, to) {
    this.from = from;
    this.to = to;
    this.draw();
    this.later();
  }

  cursor(axis) {
    this.at = axis;
    this.draw();
  }

  dispose() {
    this.stop?.abort();
    for (const off of this.offs) off();
  }

  #say(text, bad = false) {
    this.element.querySelector(".sentence")?.remove();
    if (text) this.element.append(sentence(text, bad));
    this.element.dataset.ready = "yes";
  }

  async #load() {
    if (!this.wanted || this.from == null || !this.size) return;
    this.stop?.abort();
    this.stop = new AbortController();
    const { api, data, time, logs } = this.context, log = this.wanted.log ?? logs[0].id, [width, height] = this.size;
    this.element.classList.add("busy");
    try {
      // Many frequencies need long pieces of time: no more of them than leave a dozen pieces in the window.
      const channel = (await data.channels(log)).find((one) => one.topic === this.wanted.topic);
      const samples = ((channel?.count ?? 0) * Math.min(1, (this.to - this.from) / this.context.log(log).duration)) / 24;
      const answer = await api.bytes(`/api/logs/${log}/spectrogram`, {
        ...wish(this.wanted), from: Math.round(time.toLog(log, this.from)), to: Math.round(time.toLog(log, this.to)),
        width: Math.max(16, Math.round((width - LEFT - RIGHT) / 2)), height: Math.round(Math.max(16, Math.min(256, height - EDGE.top - EDGE.bottom, samples))),
      }, this.stop);
      const [head] = lengthPrefixed(answer.slice(0, 4 + new DataView(answer).getUint32(0, true)));
      const about = JSON.parse(new TextDecoder().decode(head)), values = new Uint8Array(answer, 4 + head.length);
      const picture = new ImageData(about.width, about.height);
      // The first row of the answer is the lowest frequency, that of a picture is its top.
      for (let y = 0, i = 0; y < about.height; y++) {
        for (let at = 4 * about.width * (about.height - 1 - y), end = at + 4 * about.width; at < end; at += 4) picture.data.set([...RAMP[values[i++]], 255], at);
      }
      const canvas = document.createElement("canvas");
      canvas.width = about.width;
      canvas.height = about.height;
      canvas.getContext("2d").putImageData(picture, 0, 0);
      this.cells = { ...about, canvas, from: time.toAxis(log, about.from), to: time.toAxis(log, about.to) };
      this.element.dataset.points = values.length;
      this.#say("");
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") { this.cells = null; this.#say(error.message, true); fit(this.sheet, ...this.size); }
    }
    this.element.classList.remove("busy");
  }

  #draw() {
    if (!this.size || !this.cells || this.from == null) return;
    this.#paint(fit(this.sheet, ...this.size));
  }

  /** Return a canvas with what is seen and the axis of time, in `scale` pixels for each of the screen. */
  picture(scale) {
    if (!this.size || !this.cells || this.from == null) return null;
    const sheet = document.createElement("canvas");
    this.#paint(fit(sheet, ...this.size, scale), true);
    return sheet;
  }

  #times(pen, x) {
    const { time } = this.context, span = this.to - this.from, step = STEPS.find((one) => (one / span) * this.size[0] > 80) ?? STEPS.at(-1);
    pen.textAlign = "center";
    for (let at = Math.ceil((this.from - time.zero()) / step) * step + time.zero(); at <= this.to; at += step) pen.fillText(time.text(at, step), x(at), this.size[1] - EDGE.bottom + 9);
    pen.textAlign = "left";
    pen.fillText({ start: "s", utc: "UTC", log: "log" }[time.clock], 6, this.size[1] - EDGE.bottom + 9);
  }

  #paint(pen, withTimes = false) {
    const [width, height] = this.size, { cells: picture } = this;
    const inner = { width: width - LEFT - RIGHT, height: height - EDGE.top - EDGE.bottom };
    const x = (axis) => LEFT + ((axis - this.from) / (this.to - this.from)) * inner.width;
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, EDGE.top, inner.width, inner.height);
    pen.clip();
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture.canvas, x(picture.from), EDGE.top, x(picture.to) - x(picture.from), inner.height);
    pen.restore();
    axes(pen, { width, height, x: [0, 1], y: [0, picture.frequency_max], grid: false, below: false, yName: "Hz" });
    pen.fillStyle = css("--faint");
    pen.textAlign = "left";
    if (withTimes) this.#times(pen, x);
    pen.fillText(`${short(picture.least, 3)} to ${short(picture.most, 3)} dB${picture.unit ? ` (${picture.unit})` : ""}`, withTimes ? LEFT + 40 : LEFT, withTimes ? 8 : height - EDGE.bottom + 11);
    if (this.at != null && this.at >= this.from && this.at <= this.to) { pen.fillStyle = css("--panel"); pen.fillRect(x(this.at), EDGE.top, 1, inner.height); }
  }
}
