// Tracks: asked of the server, and turned into places on the plane of the map with values for their colours.

import { project } from "./flat.js";

const MOST = 6;

/** Colours that need no field of the log. */
export const OWN = { speed: "Speed", time: "Time", height: "Height", none: "One colour" };

/** Return all tracks that the logs offer: [{log, id, topic, kind, label, shown}]. */
export async function sources({ api, logs }) {
  const found = await Promise.all(logs.map(async ({ id: log }) => (await api.get(`/api/logs/${log}/tracks`)).map((one) => ({ ...one, log, key: `${log} ${one.id}` }))));
  return found.flat();
}

/** Return a track with its places; `colour` is a field `{log, topic, field}` or a name of OWN. */
export async function load(api, source, colour) {
  const field = typeof colour === "object" && colour.log === source.log ? `${colour.topic}.${colour.field}` : null;
  const { columns, metadata } = await api.arrow(`/api/logs/${source.log}/track`, { track: source.id, color: field });
  const geo = source.kind === "geo", n = columns.t.length, x = new Float64Array(n), y = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    if (geo) [x[i], y[i]] = project(columns.lat[i], columns.lon[i]);
    else [x[i], y[i]] = [columns.x[i], columns.y[i]];
  }
  const z = geo ? columns.alt : columns.z, near = metadata.near ? JSON.parse(metadata.near) : null;
  const jumps = JSON.parse(metadata.jumps ?? "[]").map((one) => ({ ...one, places: one.places.map(([a, b]) => (geo ? project(a, b) : [a, b])) }));
  return { source, geo, jumps, about: metadata.about, near: near && near.map(([a, b]) => (geo ? project(a, b) : [a, b])), t: columns.t, x, y, z, lat: columns.lat, lon: columns.lon, field: columns.c ?? null, total: Number(metadata.total), speed: speeds(columns.t, x, y, geo) };
}

/** Return the default tracks with at least one place; one that is empty is replaced by the next. */
export async function standard(api, all, colour) {
  const found = [];
  for (const log of new Set(all.map((one) => one.log))) {
    const own = all.filter((one) => one.log === log);
    for (const kind of ["geo", "local"]) {
      const list = own.filter((one) => one.kind === kind), first = list.filter((one) => one.shown);
      let tracks = (await Promise.all(first.map((one) => load(api, one, colour)))).filter(valid);
      for (const one of list.filter((other) => !other.shown).slice(0, MOST)) {
        if (tracks.length) break;
        tracks = [await load(api, one, colour)].filter(valid);
      }
      found.push(...tracks);
      if (tracks.length) break;
    }
  }
  // Degrees and metres do not fit on one map: the kind of the first log counts.
  return found.filter((one) => one.geo === found[0].geo);
}

export function valid(track) {
  return track.total > 0;
}

/** Speed in m/s over at least one second, so that the noise of positions counts less. */
function speeds(t, x, y, geo) {
  const n = t.length, out = new Float64Array(n).fill(NaN);
  let a = 0;
  for (let i = 0; i < n; i++) {
    if (Number.isNaN(t[i])) { a = i + 1; continue; }
    while (a < i && t[i] - t[a] > 1e9 && t[i] - t[a + 1] >= 1e9) a += 1;
    if (a >= i) continue;
    const stretch = geo ? 1 / Math.cosh(y[i] / 6378137) : 1;
    out[i] = Math.hypot(x[i] - x[a], y[i] - y[a]) * stretch / ((t[i] - t[a]) / 1e9);
    if (a === 0 || Number.isNaN(t[a - 1])) for (let k = a; k < i; k++) if (Number.isNaN(out[k])) out[k] = out[i];
  }
  return out;
}

/** Return the values by which a track is coloured, or null for one colour. */
export function values(track, colour) {
  if (typeof colour === "object") return track.field;
  return { speed: track.speed, time: track.t, height: track.z }[colour] ?? null;
}

/** Return the row of the last point at or before `t`, or -1. */
export function rowAt({ t }, when) {
  // Rows of NaN cut the line; the next row has a time.
  const time = (i) => (Number.isNaN(t[i]) ? t[i + 1] : t[i]);
  let low = 0, high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time(middle) <= when) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** Return {x, y, z, lat, lon, speed, heading} at a time between two points of a track, or null before the first. */
export function placeAt(track, when) {
  const { t, x, y, z } = track, i = rowAt(track, when);
  if (i < 0) return null;
  const next = i + 1 < t.length && !Number.isNaN(t[i + 1]) && t[i + 1] > t[i] ? i + 1 : i;
  const part = next > i ? Math.min(1, (when - t[i]) / (t[next] - t[i])) : 0;
  const mix = (list) => (list ? list[i] + (list[next] - list[i]) * part : NaN);
  let a = i, b = next;
  // The heading needs a step of some length.
  while (a > 0 && i - a < 50 && !(Math.hypot(x[b] - x[a], y[b] - y[a]) > 0.3)) a -= 1;
  const moved = Math.hypot(x[b] - x[a], y[b] - y[a]) > 0.05;
  return { x: mix(x), y: mix(y), z: mix(z), lat: mix(track.lat), lon: mix(track.lon), speed: track.speed[i], heading: moved ? Math.atan2(y[b] - y[a], x[b] - x[a]) : null };
}

/** Return the box of the plane that holds all tracks, without what lies far behind a jump. */
export function box(tracks) {
  const found = { left: Infinity, right: -Infinity, bottom: Infinity, top: -Infinity };
  const add = (x, y) => {
    found.left = Math.min(found.left, x);
    found.right = Math.max(found.right, x);
    found.bottom = Math.min(found.bottom, y);
    found.top = Math.max(found.top, y);
  };
  for (const { x, y, near } of tracks) {
    if (near) for (const place of near) add(...place);
    else for (let i = 0; i < x.length; i++) if (!Number.isNaN(x[i])) add(x[i], y[i]);
  }
  return found;
}

/** Return least and most of the values, without the outermost hundredths where there are many. */
export function range(lists) {
  const all = [];
  for (const list of lists) {
    const step = Math.max(1, Math.floor(list.length / 20000));
    for (let i = 0; i < list.length; i += step) if (Number.isFinite(list[i])) all.push(list[i]);
  }
  if (!all.length) return null;
  all.sort((a, b) => a - b);
  const cut = all.length > 200 ? Math.floor(all.length / 100) : 0;
  return [all[cut], all[all.length - 1 - cut]];
}
