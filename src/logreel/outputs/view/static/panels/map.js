// The map: tracks over a bundled outline of the world and a grid in metres; local tracks where there is no position on Earth.

import { button, drag, el, fit, frame } from "../dom.js";
import { seriesColour } from "../colours.js";
import { menu } from "../menu.js";
import { sentence } from "./sentence.js";
import { short } from "../series.js";
import { colourBar, colours, drawJumps, drawTracks, ground, inset, marker, scaleBar } from "./map/draw.js";
import { Sight } from "./map/flat.js";
import { OWN, box, load, placeAt, range, sources, standard, values } from "./map/tracks.js";
import { Tiles } from "./map/tiles.js";
import { world } from "./map/world.js";

const UNITS = { speed: "m/s", height: "m" };

export function create(context, settings) {
  return new MapPanel(context, settings);
}

class MapPanel {
  constructor(context, { chosen, colour, follow }) {
    this.title = "Map";
    this.context = context;
    this.chosen = Array.isArray(chosen) ? chosen : null;
    this.colour = colour ?? "speed";
    this.following = Boolean(follow);
    this.tracks = [];
    this.hover = null;
    this.moved = false;
    this.redraw = frame(() => this.#draw());
    this.point = frame(() => this.#mark());
  }

  async mount(element) {
    const { bus, api, session } = this.context;
    this.element = element;
    this.base = el("canvas", { "aria-hidden": "true" });
    this.over = el("canvas", { class: "over", tabindex: 0, role: "application", "aria-label": "Map. Arrow keys move, plus and minus zoom, 0 shows all." });
    this.where = el("div", { class: "where" });
    this.place = el("div", { class: "space" }, this.base, this.over, this.where);
    this.tools = el("div", { class: "tool" },
      button("Tracks", "Choose tracks", (event) => menu(event.currentTarget, this.#choices())),
      button("Colour", "Choose what colours the tracks", (event) => menu(event.currentTarget, this.#colours())),
      el("span", { class: "spring" }),
      this.hold = button("Follow", "Keep the place at the cursor in view", () => { this.following = !this.following; this.#pressed(); this.point(); }),
      button("Fit", "Show all", () => this.#all()));
    element.replaceChildren(this.tools, this.place);
    this.#pressed();
    this.#pointer();
    if (session.tiles) this.tiles = new Tiles(api, session.tiles, this.redraw);
    this.offs = [
      bus.on("theme", this.redraw), bus.on("shift", this.redraw), bus.on("clock", this.redraw),
      bus.on("hover", (axis) => { this.hover = axis; this.point(); }),
      bus.on("grown", () => this.#load()),
    ];
    this.resize(this.place.clientWidth, this.place.clientHeight);
    await this.#load(true);
  }

  settings() {
    return { chosen: this.chosen, colour: this.colour === "speed" ? undefined : this.colour, follow: this.following || undefined };
  }

  resize() {
    const width = this.place.clientWidth, height = this.place.clientHeight;
    if (!width || !height) return;
    if (this.sight) Object.assign(this.sight, { width, height });
    this.width = width;
    this.height = height;
    if (this.sight && !this.moved) this.sight.fit(box(this.tracks));
    this.redraw();
  }

  window() {
    this.redraw();
  }

  cursor() {
    this.point();
  }

  dispose() {
    this.gone = true;
    for (const off of this.offs ?? []) off();
  }

  async #load(first = false) {
    const { api } = this.context;
    try {
      this.all = await sources(this.context);
      const wanted = this.chosen && this.all.filter((one) => this.chosen.includes(one.key));
      this.tracks = wanted ? await Promise.all(wanted.map((one) => load(api, one, this.colour))) : await standard(api, this.all, this.colour);
    } catch (error) {
      return this.#say(error.message, true);
    }
    if (this.gone) return undefined;
    const here = this.tracks.filter((track) => track.total > 0);
    if (!here.length) {
      return this.#say(this.all.length ? `No valid position is in ${this.all.length === 1 ? this.all[0].label : "any of the tracks"}.` : "The log holds no positions: neither latitude and longitude, nor places in metres.");
    }
    this.said?.remove();
    const geographic = here[0].geo;
    if (!this.sight || this.sight.geographic !== geographic) {
      this.sight = Object.assign(new Sight(geographic), { width: this.width, height: this.height });
      this.moved = false;
    }
    if (!this.moved) this.sight.fit(box(this.tracks));
    if (geographic) world(api).then((found) => { this.outline = found; this.redraw(); }, (error) => this.context.say(error.message));
    this.redraw();
    return undefined;
  }

  #say(text, bad = false) {
    this.said?.remove();
    this.said = sentence(text, bad);
    this.place.append(this.said);
    this.element.dataset.ready = bad ? "error" : "empty";
  }

  #pressed() {
    this.hold.setAttribute("aria-pressed", this.following);
  }

  #choices() {
    const shown = new Set(this.tracks.map(({ source }) => source.key)), several = this.context.logs.length > 1;
    const name = (one) => (several ? `${this.context.log(one.log).name}: ` : "") + one.label;
    const entry = (one) => ({ text: name(one), on: shown.has(one.key), run: () => this.#toggle(one, shown) });
    const geo = this.all.filter(({ kind }) => kind === "geo"), local = this.all.filter(({ kind }) => kind === "local");
    return [...(geo.length ? [{ text: "On Earth" }, ...geo.map(entry)] : []), null, ...(local.length ? [{ text: "Local, in metres" }, ...local.map(entry)] : [])];
  }

  #toggle(one, shown) {
    const keep = this.all.filter((other) => other.kind === one.kind && shown.has(other.key) !== (other === one));
    this.chosen = keep.map(({ key }) => key);
    this.moved = false;
    this.context.state.changed();
    this.#load();
  }

  #colours() {
    const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
    const entry = (colour, text) => ({ text, on: same(this.colour, colour), run: () => { this.colour = colour; this.context.state.changed(); this.#load(); } });
    const fields = this.context.plots.series().filter(({ field, sql }) => field && !sql).map(({ log, topic, field }) => ({ log, topic, field }));
    const select = this.context.bus.last("select");
    if (select?.field) fields.unshift({ log: select.log, topic: select.topic, field: select.field });
    const own = fields.filter((one, i) => fields.findIndex((other) => same(one, other)) === i).slice(0, 16);
    return [...Object.entries(OWN).map(([name, text]) => entry(name, text)), null, { text: own.length ? "Fields of the plots" : "Fields: plot one to choose it here" }, ...own.map((one) => entry(one, `${one.topic}.${one.field}`))];
  }

  #all() {
    this.moved = false;
    this.sight?.fit(box(this.tracks));
    this.redraw();
  }

  #limits() {
    // Several tracks have a colour each, unless a colour was chosen.
    if (this.colour === "none" || (this.tracks.length > 1 && this.colour === "speed")) return null;
    const lists = this.tracks.map((track) => values(track, this.colour)).filter(Boolean);
    return lists.length ? range(lists) : null;
  }

  #draw() {
    const { sight, tracks } = this;
    if (!sight || !this.width || this.gone) return;
    const limits = this.#paint(fit(this.base, this.width, this.height));
    this.about = this.sight.geographic ? this.tiles && this.context.session.tiles.attribution : "Local frame";
    this.element.dataset.ready = "yes";
    this.element.dataset.jumps = tracks.reduce((sum, { jumps }) => sum + jumps.length, 0);
    this.element.dataset.limits = limits ? limits.join(" ") : "";
    this.element.dataset.metres = Math.round((this.width * sight.metres) / sight.scale);
    this.element.dataset.drawn = Number(this.element.dataset.drawn ?? 0) + 1;
    this.#mark();
  }

  /** Return a canvas with what is seen, in `scale` pixels for each of the screen: also the places and their texts. */
  picture(scale) {
    if (!this.sight || !this.width) return null;
    const sheet = document.createElement("canvas"), pen = fit(sheet, this.width, this.height, scale), palette = colours();
    this.#paint(pen);
    this.#markers(pen);
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    [...this.where.children].forEach(({ textContent }, i) => {
      pen.fillStyle = palette.panel;
      pen.fillRect(6, 4 + 16 * i, pen.measureText(textContent).width + 8, 16);
      pen.fillStyle = palette.text;
      pen.fillText(textContent, 10, 12 + 16 * i);
    });
    return sheet;
  }

  /** Draw ground, tracks and scales; return the limits of the colours. */
  #paint(pen) {
    const { sight, tracks } = this, { view, time } = this.context, palette = colours(), { from, to } = view.window;
    const first = tracks.find((track) => track.total > 0), origin = first ? { x: first.x[0], y: first.y[0] } : { x: 0, y: 0 };
    const step = ground(pen, sight, { outline: this.outline, tiles: sight.geographic ? this.tiles : null, palette, origin });
    const limits = this.#limits();
    drawTracks(pen, sight, tracks, { colour: this.colour, limits, palette, own: (track, t) => time.toAxis(track.source.log, t), inside: (axis) => axis >= from - 1 && axis <= to + 1 });
    drawJumps(pen, sight, tracks, palette);
    inset(pen, sight, this.outline, palette);
    scaleBar(pen, sight, step, palette);
    if (limits) {
      const title = typeof this.colour === "object" ? `${this.colour.topic}.${this.colour.field}` : `${OWN[this.colour]}${UNITS[this.colour] ? ` (${UNITS[this.colour]})` : ""}`;
      const text = this.colour === "time" ? (t) => time.text(time.toAxis(tracks[0].source.log, t), 1e9) : (value) => (Math.abs(value) < (limits[1] - limits[0]) / 200 ? "0" : short(value, 3));
      colourBar(pen, sight, limits, title, text, palette);
    }
    return limits;
  }

  /** Draw the places at the cursor and under the pointer; return those at the cursor. */
  #markers(pen) {
    const { sight } = this, { view, time } = this.context, palette = colours(), now = view.cursor ?? view.window.from;
    const at = (track, axis) => placeAt(track, time.toLog(track.source.log, axis)), here = this.tracks.map((track) => at(track, now));
    if (this.hover != null) for (const place of this.tracks.map((track) => at(track, this.hover))) if (place) marker(pen, ...sight.at(place.x, place.y), null, palette.faint, palette.panel, true);
    const many = this.tracks.length > 1 && !this.#limits();
    for (const [i, place] of here.entries()) if (place) marker(pen, ...sight.at(place.x, place.y), place.heading, many ? seriesColour(i) : palette.accent, palette.panel);
    return here;
  }

  #mark() {
    const { sight } = this, { view, time } = this.context;
    if (!sight || !this.width || this.gone) return;
    const now = view.cursor ?? view.window.from;
    const at = (track, axis) => placeAt(track, time.toLog(track.source.log, axis));
    const here = this.tracks.map((track) => at(track, now));
    const first = here.find(Boolean);
    if (this.following && first) {
      const [px, py] = sight.at(first.x, first.y), w = sight.width, h = sight.height;
      if (px < w * 0.2 || px > w * 0.8 || py < h * 0.2 || py > h * 0.8) {
        [sight.x, sight.y, this.moved] = [first.x, first.y, true];
        this.redraw();
        return;
      }
    }
    this.#markers(fit(this.over, this.width, this.height));
    const plain = !this.#limits() && this.tracks.length > 1;
    const ways = this.tracks.filter(({ total }) => total > 0).map(({ about }) => about);
    const lines = plain ? this.#names() : [...(first ? this.#text(first) : []), ways.length === 1 ? ways[0] : null, this.about];
    this.where.replaceChildren(...lines.filter(Boolean).map((line) => el("div", {}, line)));
    if (first) this.element.dataset.marker = sight.at(first.x, first.y).map(Math.round).join(",");
  }

  /** Return the names of the tracks in their colours. */
  #names() {
    const names = this.tracks.slice(0, 8).map(({ source, about }, i) => {
      const mark = el("i", {});
      mark.style.background = seriesColour(i);
      return el("span", { class: "key", title: about }, mark, (this.context.logs.length > 1 ? `${this.context.log(source.log).name}: ` : "") + source.label);
    });
    return this.tracks.length > 8 ? [...names, `and ${this.tracks.length - 8} others`] : names;
  }

  #text({ x, y, z, lat, lon, speed }) {
    const parts = [Number.isFinite(z) && `${z.toFixed(1)} m high`, Number.isFinite(speed) && `${speed.toFixed(1)} m/s`].filter(Boolean);
    return [this.sight.geographic ? `${lat.toFixed(6)}°, ${lon.toFixed(6)}°` : `${x.toFixed(2)}, ${y.toFixed(2)} m`, parts.join(" · ")];
  }

  /** Set the cursor to the point of a track that is nearest to a place in pixels. */
  #pick(px, py) {
    const { sight } = this, { view, time } = this.context;
    const near = [];
    for (const track of this.tracks) {
      for (let i = 0; i < track.t.length; i++) {
        const [x, y] = sight.at(track.x[i], track.y[i]), far = Math.hypot(x - px, y - py);
        if (far < 24) near.push([far, time.toAxis(track.source.log, track.t[i])]);
      }
    }
    // Where ways cross, the one that is nearer in time is meant.
    const least = near.reduce((far, one) => Math.min(far, one[0]), Infinity) + 3, now = view.cursor ?? view.window.from;
    const found = near.filter(([far]) => far <= least).reduce((best, [, axis]) => (best === null || Math.abs(axis - now) < Math.abs(best - now) ? axis : best), null);
    if (found === null) return;
    view.setCursor(found);
    view.reveal(found);
  }

  #pointer() {
    const move = (dx, dy) => { this.sight?.move(dx, dy); this.moved = true; this.redraw(); };
    const zoom = (factor, px, py) => { this.sight?.zoom(factor, px, py); this.moved = true; this.redraw(); };
    this.over.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      let { clientX, clientY } = event;
      this.over.focus({ preventScroll: true });
      drag(event, (now) => {
        move(now.clientX - clientX, now.clientY - clientY);
        ({ clientX, clientY } = now);
      }, (now, moved) => { if (!moved && this.sight) this.#pick(event.offsetX, event.offsetY); });
    });
    this.over.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.offsetX, event.offsetY);
    }, { passive: false });
    this.over.addEventListener("dblclick", () => this.#all());
    this.over.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      const run = { "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => this.#all() };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in steps || event.key in run)) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key in steps) move(...steps[event.key]); else run[event.key]();
    });
  }
}

