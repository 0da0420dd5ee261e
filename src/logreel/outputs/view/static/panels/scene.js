// The scene in three dimensions: clouds, scans, poses, paths, actors, vehicles and frames at the cursor.

import * as THREE from "/vendor/three/three.module.min.js";
import { button, el, fit, frame, written } from "../dom.js";
import { menu } from "../menu.js";
import { sentence } from "./sentence.js";
import { metres } from "./map/flat.js";
import { decode } from "./scene/decode.js";
import { Meshes } from "./scene/meshes.js";
import { Orbit } from "./scene/orbit.js";
import { bounds, frameAxes, middle, put, shape } from "./scene/items.js";
import { colour, free, grid, gridKey, line } from "./scene/shapes.js";
import { keys, names, notes } from "./scene/words.js";

const KINDS = { cloud: "Point clouds", scan: "Scans", pose: "Poses", path: "Paths", actors: "Actors", body: "Vehicles", grid: "Maps of occupancy", markers: "Markers", detections: "Detections", robot: "Robots", frames: "Transforms" };
/** Kinds whose arrays stay until the next message. */
const KEPT = new Set(["cloud", "scan", "path", "grid"]);
/** Pixels that poses and vehicles have at least. */
const LEAST = 34;
/** Pixels of a point, and seconds for which clouds stay. */
const SIZES = [1, 1.6, 2.5, 4, 6], DECAYS = [0, 0.5, 1, 3, 10, 30];
const POINTS = { colour: "", size: null, decay: 0 };
const VIEWS = { Oblique: [-2.2, 0.6], "From above": [-Math.PI / 2, Math.PI / 2 - 0.01], "From behind": [Math.PI, 0.35], "From the side": [-Math.PI / 2, 0.15] };

export function create(context, settings) {
  return new ScenePanel(context, settings);
}

class ScenePanel {
  constructor(context, { log, topics, fixed, follow, tags, points }) {
    this.title = "3D";
    this.context = context;
    this.log = context.log(log ?? "").id;
    this.chosen = topics ? new Set(topics) : null;
    this.fixed = fixed ?? null;
    this.following = follow !== false;
    this.tagged = tags !== false;
    this.points = { ...POINTS, ...points };
    this.items = new Map();
    this.trails = new Map();
    this.meshes = new Meshes(context.api, () => this.render());
    this.render = frame(() => this.#render());
    this.later = frame(() => this.#load());
  }

  async mount(element) {
    const { bus } = this.context;
    this.element = element;
    this.place = el("div", { class: "space scene", tabindex: 0, role: "application", "aria-label": "3D scene. Arrow keys turn, with Shift they move; plus and minus zoom." });
    this.tags = el("div", {});
    this.notes = el("ul", { class: "notes" });
    this.place.append(this.tags, this.notes);
    this.frameButton = button("Frame", "Choose the fixed frame", (event) => menu(event.currentTarget, this.#frames()), { class: "long" });
    element.replaceChildren(el("div", { class: "tool" },
      button("Show", "Choose what is shown", (event) => menu(event.currentTarget, this.#choices())), this.frameButton,
      this.pointsButton = button("Points", "Choose colour, size and time of points", (event) => menu(event.currentTarget, this.#looks()), { hidden: true }), el("span", { class: "spring" }),
      button("View", "Choose where to look from", (event) => menu(event.currentTarget, Object.entries(VIEWS).map(([text, [turn, tilt]]) => ({ text, run: () => this.#look(turn, tilt) })))),
      this.hold = button("Follow", "Keep the vehicle in the middle", () => { this.following = !this.following; this.orbit.shifted = false; this.#pressed(); this.#render(); this.context.state.changed(); }),
      button("Fit", "Show all", () => { this.orbit.shifted = false; this.#fit(true); this.render(); })), this.place);
    this.#pressed();
    try {
      this.renderer = new THREE.WebGLRenderer({ antialias: true, powerPreference: "low-power" });
    } catch {
      return this.#say("This browser offers no WebGL, which 3D needs.", true);
    }
    this.place.prepend(this.renderer.domElement);
    this.scene = new THREE.Scene();
    const sun = new THREE.DirectionalLight(0xffffff, 1.6);
    sun.position.set(-2, -3, 5);
    this.scene.add(new THREE.AmbientLight(0xffffff, 1.6), sun);
    this.orbit = new Orbit(this.place, this.render);
    this.place.addEventListener("dblclick", () => { this.orbit.shifted = false; this.#fit(true); this.render(); });
    this.offs = [
      bus.on("theme", () => { this.#clear(); this.later(); }), bus.on("shift", this.later),
      bus.on("grown", ({ log }) => { if (log === this.log) { for (const one of this.trails.values()) free(one.object); this.trails.clear(); this.asked = null; this.#sources().then(this.later, () => {}); } }),
    ];
    this.resize();
    try {
      await this.#sources();
    } catch (error) {
      return this.#say(error.message, true);
    }
    if (!this.sources.length) return this.#say("The log holds nothing to show in space: no points, scans, poses, transforms or actors.");
    return this.#load();
  }

  settings() {
    return { log: this.log, topics: this.chosen ? [...this.chosen] : undefined, fixed: this.fixed ?? undefined, follow: this.following ? undefined : false, tags: this.tagged ? undefined : false, points: Object.keys(POINTS).some((name) => this.points[name] !== POINTS[name]) ? this.points : undefined };
  }

  resize() {
    const width = this.place.clientWidth, height = this.place.clientHeight;
    if (!this.renderer || !width || !height) return;
    this.renderer.setPixelRatio(Math.min(2, devicePixelRatio || 1));
    this.renderer.setSize(width, height);
    this.orbit.camera.aspect = width / height;
    this.orbit.apply();
    this.render();
  }

  window() {
    if (this.context.view.cursor == null) this.later();
  }

  cursor() {
    this.later();
  }

  dispose() {
    this.gone = true;
    for (const off of this.offs ?? []) off();
    if (!this.renderer) return;
    this.#clear();
    free(this.ground);
    this.meshes.dispose();
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }

  async #sources() {
    const { api } = this.context;
    this.sources = (await api.get(`/api/logs/${this.log}/scene/sources`)).sources;
    this.tracks = await api.get(`/api/logs/${this.log}/tracks`);
    this.pointsButton.hidden = !this.sources.some(({ kind }) => kind === "cloud" || kind === "scan");
  }

  #shown() {
    return this.sources.filter(({ topic, shown }) => (this.chosen ? this.chosen.has(topic) : shown)).map(({ topic }) => topic);
  }

  #say(text, bad = false) {
    this.place.querySelector(".sentence")?.remove();
    if (text) this.place.append(sentence(text, bad));
    this.element.dataset.ready = bad ? "error" : text ? "empty" : "yes";
  }

  #pressed() {
    this.hold.setAttribute("aria-pressed", this.following);
  }

  #choices() {
    const shown = new Set(this.#shown()), entries = [];
    if (this.context.logs.length > 1) {
      entries.push({ text: "Log" }, ...this.context.logs.map(({ id, name }) => ({ text: name, on: id === this.log, run: () => this.#other(id) })), null);
    }
    for (const [kind, title] of Object.entries(KINDS)) {
      const own = this.sources?.filter((one) => one.kind === kind) ?? [];
      if (own.length) entries.push({ text: title }, ...own.map(({ topic }) => ({ text: topic, on: shown.has(topic), run: () => this.#toggle(topic, shown) })));
    }
    entries.push(null, { text: "Names", on: this.tagged, run: () => { this.tagged = !this.tagged; this.#render(); this.context.state.changed(); } });
    return entries;
  }

  #toggle(topic, shown) {
    if (!shown.delete(topic)) shown.add(topic);
    this.chosen = shown;
    this.context.state.changed();
    this.later();
  }

  async #other(id) {
    this.log = id;
    this.chosen = this.fixed = null;
    this.fitted = false;
    this.#clear();
    await this.#sources();
    this.context.state.changed();
    this.later();
  }

  #frames() {
    const names = this.answer?.frames.map(({ name }) => name) ?? [];
    if (!names.length) return [{ text: "The log holds no transforms." }];
    return [{ text: "Fixed frame" }, ...names.map((name) => ({ text: name, on: name === this.answer.fixed_frame, run: () => { this.fixed = name; this.fitted = false; if (this.points.decay) this.#clear(); this.context.state.changed(); this.later(); } }))];
  }

  /** How points look: by which field they are coloured, how large they are, and how long they stay. */
  #looks() {
    const { colour: now, size, decay } = this.points;
    const clouds = [...this.items.values()].filter(({ item }) => item.kind === "cloud" || item.kind === "scan"), fields = new Set(clouds.flatMap(({ item }) => item.fields));
    const entry = (name, value, text) => ({ text, on: this.points[name] === value, run: () => {
      this.points = { ...this.points, [name]: value };
      // Other arrays are needed.
      for (const { item, object } of clouds) { free(object); this.items.delete(item.topic); }
      this.asked = null;
      this.context.state.changed();
      this.later();
    } });
    if (now && now !== "none") fields.add(now);
    return [{ text: "Colour" }, entry("colour", "", "As measured"), ...[...fields].map((name) => entry("colour", name, name)), entry("colour", "none", "One colour"), null,
      { text: "Size" }, entry("size", null, "Usual"), ...SIZES.map((pixels) => entry("size", pixels, `${pixels} px`)), null,
      { text: "Stay" }, ...DECAYS.map((seconds) => entry("decay", seconds, seconds ? `${seconds} s` : "Last cloud only"))];
  }

  /** Return a canvas with what is seen and its words, in `scale` pixels for each of the screen. */
  picture(scale) {
    const { clientWidth: width, clientHeight: height } = this.place;
    if (!this.renderer || !this.answer || !width || !height) return null;
    const sheet = document.createElement("canvas"), pen = fit(sheet, width, height, scale);
    this.renderer.setPixelRatio(scale);
    // What was drawn is there until the browser shows it.
    this.#render();
    pen.drawImage(this.renderer.domElement, 0, 0, width, height);
    this.resize();
    written(pen, this.place, this.place.querySelectorAll(".tag, .notes > li"));
    return sheet;
  }

  #look(turn, tilt) {
    this.orbit.turn = turn;
    this.orbit.tilt = tilt;
    this.orbit.apply();
    this.render();
  }

  #clear() {
    for (const { object } of this.items.values()) free(object);
    for (const { object } of this.trails.values()) free(object);
    this.items.clear();
    this.trails.clear();
    free(this.frames);
    this.frames = this.asked = null;
  }

  async #load() {
    if (this.gone || !this.sources?.length) return;
    // While an answer is under way the newest cursor waits: a cursor that plays must not starve it.
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const { api, time, view } = this.context, log = this.log;
    const at = Math.round(time.toLog(log, view.cursor ?? view.window.from)), topic = this.#shown();
    // The window and the cursor may both tell of the same moment.
    const { colour: color, decay } = this.points, fixed = this.fixed ?? (decay ? this.answer?.fixed_frame : null);
    const asked = JSON.stringify([log, at, topic, fixed, color, decay]);
    if (asked === this.asked) { this.busy = false; return; }
    const have = Object.fromEntries([...this.items].filter(([, one]) => one.keep).map(([name, one]) => [name, one.t]));
    try {
      const answer = topic.length ? decode(await api.bytes(`/api/logs/${log}/scene`, { at, topic, fixed_frame: fixed, have: JSON.stringify(have), color, decay: 1000 * decay || null })) : { fixed_frame: "", frames: [], items: [] };
      if (this.gone || log !== this.log) return;
      this.asked = asked;
      this.#take(answer, topic);
      await this.#trail(answer);
      if (this.gone) return;
      if (!this.fitted) this.#fit();
      const none = !answer.frames.length && [...this.items.values()].every(({ item, object }) => !item.place || !object.userData.position?.length);
      const why = answer.items.find(({ note }) => note)?.note ?? (answer.items.length ? "The messages at this moment hold nothing to draw." : "Nothing was recorded before this moment.");
      this.#say(topic.length ? (none ? why : "") : "Nothing is chosen: choose under Show.");
      this.element.dataset.time = at;
      this.#render();
    } catch (error) {
      if (!this.gone) this.#say(error.message, true);
    } finally {
      this.busy = false;
      if (this.again) { this.again = false; this.later(); }
    }
  }

  /** Take the items of an answer; those whose arrays are missing stay as they are. */
  #take(answer, topics) {
    this.answer = answer;
    const there = new Set(answer.items.map(({ topic }) => topic));
    for (const [topic, one] of this.items) if (!there.has(topic)) { free(one.object); this.items.delete(topic); }
    for (const item of answer.items) {
      let one = this.items.get(item.topic);
      if (!one || Object.keys(item.arrays).length) {
        free(one?.object);
        one = { object: shape(item, this.points.size), keep: KEPT.has(item.kind) };
        this.items.set(item.topic, one);
        this.scene.add(one.object);
        if (item.arrays.mesh) this.meshes.add(one.object, item, this.log);
      }
      Object.assign(one, { item, t: item.t });
      put(one.object, item.place);
    }
    free(this.frames);
    this.frames = null;
    const wanted = this.sources.some(({ kind, topic }) => kind === "frames" && topics.includes(topic));
    if (wanted && answer.frames.length) {
      this.frames = frameAxes(answer.frames);
      this.scene.add(this.frames);
    }
    this.frameButton.textContent = answer.fixed_frame ? `Frame ${answer.fixed_frame}` : "Frame";
  }

  /** Draw the whole way of what moves, once. */
  async #trail({ items, frames }) {
    const { api } = this.context, moving = new Set(items.filter(({ kind }) => kind === "body" || kind === "pose" || kind === "actors").map(({ topic }) => topic));
    for (const [key, one] of this.trails) if (!moving.has(one.topic)) { free(one.object); this.trails.delete(key); }
    for (const { id, topic, kind, frame: own } of this.tracks) {
      if (kind !== "local" || !moving.has(topic) || this.trails.has(id)) continue;
      this.trails.set(id, { topic, frame: own, object: null });
      const { columns: { x, y, z } } = await api.arrow(`/api/logs/${this.log}/track`, { track: id }), place = new Float32Array(3 * x.length);
      for (let i = 0; i < x.length; i++) place.set([x[i], y[i], z[i]], 3 * i);
      const found = { topic, frame: own, place, object: line(place, colour("--series-3")) };
      this.trails.set(id, found);
      this.scene.add(found.object);
    }
    for (const { object, frame: own } of this.trails.values()) {
      const at = own && frames.length ? frames.find(({ name }) => name === own)?.place ?? null : undefined;
      if (object && at !== undefined) put(object, at);
    }
  }

  #fit(all = false) {
    this.scene.updateMatrixWorld();
    const centre = middle(this), box = bounds(this, centre, all);
    if (box.isEmpty()) return;
    const size = box.getSize(new THREE.Vector3()).length();
    box.getCenter(this.orbit.target);
    // A sphere around all is seen whole from here, also where the panel is narrow.
    this.orbit.far = Math.max(2, size / 2 / Math.sin((this.orbit.camera.fov * Math.PI) / 360) / Math.min(1, this.orbit.camera.aspect));
    if (centre && !all && this.following) this.orbit.target.copy(centre);
    this.orbit.apply();
    this.fitted = true;
  }

  #render() {
    if (!this.renderer || this.gone || !this.answer) return;
    const { orbit, renderer, scene } = this;
    scene.updateMatrixWorld();
    const centre = this.following && !orbit.shifted ? middle(this) : null;
    if (centre) { orbit.target.copy(centre); orbit.apply(); }
    this.#ground();
    const height = this.place.clientHeight, pixel = (distance) => (2 * Math.tan((orbit.camera.fov * Math.PI) / 360) * distance) / height;
    const grow = (one, size) => {
      const far = orbit.camera.position.distanceTo(one.getWorldPosition(new THREE.Vector3()));
      one.scale.setScalar(Math.max(size, LEAST * pixel(far)));
    };
    for (const { object } of this.items.values()) object.traverse((one) => { if (one.userData.least) grow(one, 0.5); });
    this.frames?.traverse((one) => { if (one.userData.least) grow(one, 0.2); });
    scene.background = colour("--panel");
    renderer.render(scene, orbit.camera);
    const { time, view } = this.context, place = this.place;
    this.tags.replaceChildren(...(this.tagged ? names(this, orbit.camera, place.clientWidth, place.clientHeight) : []));
    this.notes.replaceChildren(...notes(this, time.toLog(this.log, view.cursor ?? view.window.from), this.meshes.notes).slice(0, 4), ...keys(this), el("li", {}, `Grid ${metres(this.ground.userData.step)}`));
    this.element.dataset.drawn = Number(this.element.dataset.drawn ?? 0) + 1;
  }

  #ground() {
    const { target, far } = this.orbit, key = `${gridKey(target, far)} ${this.context.theme()}`;
    if (this.gridKey === key) return;
    free(this.ground);
    this.gridKey = key;
    this.ground = grid(target, far);
    this.scene.add(this.ground);
  }
}
