// Objects of the scene for the items of an answer.

import * as THREE from "/vendor/three/three.module.min.js";
import { axes, boxes, colour, craft, line, points } from "./shapes.js";
import { cells, markers } from "./drawings.js";

/** Return the object for an item; `userData.position` keeps its places. `size` is that of a point, null: the usual one. */
export function shape({ kind, arrays, labels, color }, size = null) {
  const { position } = arrays, group = new THREE.Group();
  if (position) {
    if (kind === "cloud") group.add(points(arrays, { size: size ?? 1.6, plain: color === "none" ? colour("--series-1") : null }));
    else if (kind === "scan") group.add(points(arrays, { size: size ?? 3, plain: color === "none" ? colour("--series-2") : null }));
    else if (kind === "actors") group.add(boxes(arrays, labels));
    else if (kind === "grid") group.add(cells(arrays));
    else if (kind === "markers" || kind === "detections" || kind === "robot") group.add(markers(arrays));
    else if (kind === "path") group.add(line(position, colour("--series-4")));
    else {
      const one = kind === "body" ? craft() : axes(1), turn = arrays.rotation;
      one.userData.least = true;
      one.position.set(...position.subarray(0, 3));
      one.quaternion.set(...turn.subarray(0, 4)).normalize();
      group.add(one);
      // A line to the ground shows the height.
      if (kind === "body") group.add(line(Float32Array.of(position[0], position[1], 0, ...position.subarray(0, 3)), colour("--faint")));
    }
  }
  group.userData.range = group.children[0]?.userData.range;
  group.userData.position = kind === "grid" && position ? corners(arrays) : position;
  return group;
}

/** The corners of a grid, so that all of it is in sight. */
function corners({ position, rotation, size }) {
  const turn = new THREE.Quaternion(...rotation.subarray(0, 4)).normalize(), start = new THREE.Vector3(...position.subarray(0, 3));
  return Float32Array.from([[0, 0], [1, 0], [0, 1], [1, 1]].flatMap(([x, y]) => [...new THREE.Vector3(x * size[0], y * size[1], 0).applyQuaternion(turn).add(start)]));
}

/** Place an object in the fixed frame; without a place it is not shown. */
export function put(object, place) {
  object.visible = Boolean(place);
  if (!place) return;
  object.position.set(...place.slice(0, 3));
  object.quaternion.set(...place.slice(3)).normalize();
}

/** Return the box that holds what is shown; of a town with actors, unless `all` is wanted, what is around the vehicle at `middle`. */
export function bounds({ items, trails, frames }, middle, all) {
  const box = new THREE.Box3(), moved = new THREE.Vector3();
  const actors = [...items.values()].some(({ item }) => item.kind === "actors");
  const add = (object, list) => {
    if (!list || list.length > 1.5e6) return;
    for (let i = 0; i < list.length; i += 3) {
      moved.set(list[i], list[i + 1], list[i + 2]);
      if (Number.isFinite(moved.x)) box.expandByPoint(moved.applyMatrix4(object.matrixWorld));
    }
  };
  for (const { object, item } of items.values()) if (item.place && !(actors && !all)) add(object, object.userData.position);
  for (const { object, place } of trails.values()) if (object && (!actors || all)) add(object, place);
  for (const one of frames?.children ?? []) box.expandByPoint(one.position);
  // Of a town only what is around the vehicle can be told apart.
  if (actors && !all && middle) box.setFromCenterAndSize(middle, new THREE.Vector3(36, 36, 6));
  return box;
}

/** Return the axes of all frames that are connected with the fixed frame. */
export function frameAxes(frames) {
  const group = new THREE.Group();
  for (const { place, name } of frames) {
    if (!place) continue;
    const one = axes(1);
    one.userData = { least: true, name };
    put(one, place);
    group.add(one);
  }
  return group;
}

/** Return the place that is followed: of the first vehicle or pose, or of the actor whose way is longest; null without one. */
export function middle({ items, tracks }) {
  const order = ["body", "pose", "actors"];
  const list = [...items.values()].filter(({ item }) => item.place && order.includes(item.kind)).sort((a, b) => order.indexOf(a.item.kind) - order.indexOf(b.item.kind));
  for (const { item, object } of list) {
    const row = item.kind === "actors" ? hero(item, tracks) : 0, place = object.userData.position?.subarray(3 * row, 3 * row + 3);
    if (place?.length === 3) return new THREE.Vector3(...place).applyMatrix4(object.matrixWorld);
  }
  return null;
}

/** The row of the actor whose way is longest: its track comes first. */
function hero(item, tracks) {
  const id = tracks.find(({ topic }) => topic === item.topic)?.id.split(" ").at(-1);
  return Math.max(0, item.labels.findIndex((label) => label.split("\n")[1]?.split(" ")[0] === id));
}
