// Words over the scene: names of frames and actors, and notes about what is assumed.

import * as THREE from "/vendor/three/three.module.min.js";
import { el } from "../../dom.js";
import { key } from "./ramp.js";
import { tag } from "./shapes.js";

/** Return the names of frames and actors, at their places in a picture of this size. */
export function names({ items, frames }, camera, width, height) {
  const found = [], taken = [];
  const add = (point, text, faint) => {
    const seen = point.clone().project(camera);
    if (seen.z > 1 || Math.abs(seen.x) > 1 || Math.abs(seen.y) > 1) return;
    const one = tag(text, faint), x = Math.round(((seen.x + 1) / 2) * width) + 6;
    let y = Math.round(((1 - seen.y) / 2) * height) + (faint ? 2 : -14);
    while (taken.some(([a, b]) => Math.abs(a - x) < 40 && Math.abs(b - y) < 12)) y += 12;
    taken.push([x, y]);
    one.style.transform = `translate(${x}px, ${y}px)`;
    found.push(one);
  };
  for (const one of frames?.children ?? []) add(one.position, one.userData.name, true);
  for (const { item, object } of items.values()) {
    const at = item.kind === "markers" || item.kind === "detections" ? item.arrays.text_at : null;
    if (at && item.place) for (const [i, text] of item.labels.entries()) if (found.length < 60 && text) add(new THREE.Vector3(...at.subarray(3 * i, 3 * i + 3)), text, false);
    if (item.kind !== "actors") continue;
    for (const [i, label] of item.labels.entries()) {
      const [kind, name] = label.split("\n");
      if (kind !== "vehicle" && kind !== "walker") continue;
      const place = object.userData.position.subarray(3 * i, 3 * i + 3);
      if (found.length < 60) add(new THREE.Vector3(place[0], place[1], place[2] + 2.2), name.replace(/^(\d+) (vehicle|walker)\./, "$1 "), false);
    }
  }
  return found;
}

/** Return notes about items at the moment `now` (ns since the start of the log); `more` are about meshes of robots. */
export function notes({ items }, now, more = []) {
  // The same is said once for all whom it concerns.
  const said = new Map(), note = (text, topic, warn) => said.set(text, { topics: [...(said.get(text)?.topics ?? []), topic], warn });
  for (const { item } of items.values()) {
    for (const text of item.kind === "robot" ? more : []) note(text, item.topic, true);
    if (item.note) note(item.note, item.topic, !item.place);
    const age = (now - item.t) / 1e9;
    if (age > 1) note(`The last message is ${age.toFixed(1)} s old.`, item.topic, false);
  }
  return [...said].map(([text, { topics, warn }]) => el("li", { class: warn ? "warn" : null }, `${topics.length > 2 ? `${topics[0]} and ${topics.length - 1} others` : topics.join(", ")}: ${text}`));
}

/** Return what the colours of points mean: field, least and greatest value. */
export function keys({ items }) {
  const coloured = [...items.values()].filter(({ item, object }) => item.place && object.userData.range);
  return coloured.slice(0, 4).map(({ item, object }) => key(`${item.topic}: ${item.color}`, object.userData.range));
}
