// Shapes of the scene: points, boxes, axes, vehicles, lines and the grid.

import * as THREE from "/vendor/three/three.module.min.js";
import { css, el } from "../../dom.js";
import { range, shade } from "./ramp.js";

/** Colours of the axes x, y, z, as usual in robotics. */
const AXES = [0xd0342c, 0x2e9e44, 0x2a6fdb];
const KINDS = { vehicle: "--series-1", walker: "--series-2", traffic_light: "--series-6", "traffic light": "--series-6" };

export function colour(name) {
  return new THREE.Color(css(name));
}

function attribute(array, size) {
  return new THREE.BufferAttribute(array, size);
}

/** Points of a cloud or scan, coloured by what was measured, else by height. */
export function points({ position, value, rgb }, { size, plain = null }) {
  const geometry = new THREE.BufferGeometry(), n = position.length / 3, colours = new Uint8Array(3 * n);
  geometry.setAttribute("position", attribute(position, 3));
  let ends = null;
  if (rgb) colours.set(rgb);
  else if (!plain) ends = ramp(colours, value ?? Float32Array.from({ length: n }, (_, i) => position[3 * i + 2]));
  if (!plain || rgb) geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3, true));
  const material = new THREE.PointsMaterial({ size, sizeAttenuation: false, vertexColors: Boolean(!plain || rgb), color: plain && !rgb ? plain : 0xffffff });
  const found = new THREE.Points(geometry, material);
  found.frustumCulled = false;
  found.userData.range = ends;
  return found;
}

/** Colour values; return the least and the greatest that are told apart. */
function ramp(colours, values) {
  const ends = range(values);
  for (let i = 0; i < values.length; i++) colours.set(shade(values[i], ends), 3 * i);
  return ends;
}

/** Three short lines: the axes of a frame or pose. */
export function axes(length = 1) {
  const geometry = new THREE.BufferGeometry(), place = [], tint = [];
  AXES.forEach((hex, i) => {
    const end = [0, 0, 0], { r, g, b } = new THREE.Color(hex);
    end[i] = length;
    place.push(0, 0, 0, ...end);
    tint.push(r, g, b, r, g, b);
  });
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(place, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(tint, 3));
  return new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true }));
}

/** A vehicle that shows where its front, its right side and its top are; about one metre long. */
export function craft() {
  const shape = new THREE.BufferGeometry();
  // Nose, left, right, tail, and a fin.
  const nose = [0.65, 0, 0], left = [-0.45, 0.42, 0], right = [-0.45, -0.42, 0], tail = [-0.25, 0, 0], low = [-0.2, 0, -0.1], top = [-0.22, 0, 0.16];
  const faces = [[nose, left, top], [nose, top, right], [left, tail, top], [right, top, tail], [nose, low, left], [nose, right, low], [low, tail, left], [low, right, tail]];
  shape.setAttribute("position", new THREE.Float32BufferAttribute(faces.flat(2), 3));
  shape.computeVertexNormals();
  const body = new THREE.Mesh(shape, new THREE.MeshLambertMaterial({ color: colour("--accent"), side: THREE.DoubleSide, flatShading: true }));
  const edges = new THREE.LineSegments(new THREE.EdgesGeometry(shape, 20), new THREE.LineBasicMaterial({ color: colour("--text") }));
  const group = new THREE.Group();
  group.add(body, edges, axes(0.9));
  return group;
}

/** Boxes of actors: faces of what moves by itself, edges of all. */
export function boxes({ position, rotation, centre, size }, labels) {
  const group = new THREE.Group(), n = position.length / 3, kinds = labels.map((label) => label.split("\n")[0]);
  const lines = [], tint = [], place = new THREE.Vector3(), turn = new THREE.Quaternion(), matrix = new THREE.Matrix4(), scale = new THREE.Vector3();
  const solid = [...kinds.keys()].filter((i) => kinds[i] === "vehicle" || kinds[i] === "walker");
  const faces = new THREE.InstancedMesh(new THREE.BoxGeometry(1, 1, 1), new THREE.MeshLambertMaterial({ transparent: true, opacity: 0.75 }), Math.max(1, solid.length));
  faces.count = solid.length;
  for (let i = 0; i < n; i++) {
    turn.set(...rotation.subarray(4 * i, 4 * i + 4)).normalize();
    scale.set(...size.subarray(3 * i, 3 * i + 3)).clampScalar(0.02, 1e4);
    place.set(...centre.subarray(3 * i, 3 * i + 3)).applyQuaternion(turn);
    place.x += position[3 * i];
    place.y += position[3 * i + 1];
    place.z += position[3 * i + 2];
    matrix.compose(place, turn, scale);
    const shade = colour(KINDS[kinds[i]] ?? "--faint"), at = solid.indexOf(i);
    if (at >= 0) {
      faces.setMatrixAt(at, matrix);
      faces.setColorAt(at, shade);
    }
    for (const [a, b] of EDGES) for (const corner of [a, b]) {
      const point = new THREE.Vector3(...corner).applyMatrix4(matrix);
      lines.push(point.x, point.y, point.z);
      tint.push(shade.r, shade.g, shade.b);
    }
    // A line from the middle to the front.
    if (at >= 0) for (const corner of [[0, 0, 0.5], [0.5, 0, 0.5]]) {
      const point = new THREE.Vector3(...corner).applyMatrix4(matrix);
      lines.push(point.x, point.y, point.z);
      tint.push(1, 1, 1);
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(lines, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(tint, 3));
  const edges = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true }));
  edges.frustumCulled = faces.frustumCulled = false;
  group.add(faces, edges);
  return group;
}

const CORNERS = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => [(i & 1) - 0.5, ((i >> 1) & 1) - 0.5, ((i >> 2) & 1) - 0.5]);
const EDGES = CORNERS.flatMap((corner, i) => [1, 2, 4].filter((bit) => !(i & bit)).map((bit) => [corner, CORNERS[i | bit]]));

/** A line through places; rows of NaN cut it. */
export function line(position, shade) {
  const pairs = [];
  for (let i = 3; i < position.length; i += 3) {
    if (Number.isNaN(position[i]) || Number.isNaN(position[i - 3])) continue;
    for (let k = i - 3; k < i + 3; k++) pairs.push(position[k]);
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(pairs, 3));
  const found = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: shade }));
  found.frustumCulled = false;
  return found;
}

function cells(target, far) {
  const step = 10 ** Math.floor(Math.log10(far / 2)), middle = (value) => Math.round(value / step / 10) * step * 10;
  return { step, x: middle(target.x), y: middle(target.y) };
}

/** Return what a grid depends on. */
export function gridKey(target, far) {
  return Object.values(cells(target, far)).join(" ");
}

/**
 * A grid on the plane z = 0 around a point, whose step fits the distance of the camera. It fades towards its edge.
 * Its lines are cut into pieces, as some drivers drop a line with an end behind the camera.
 */
export function grid(target, far) {
  const { step, x, y } = cells(target, far), count = 30, piece = 3, group = new THREE.Group();
  const place = [], tint = [], ground = colour("--panel"), shades = [ground.clone().lerp(colour("--faint"), 0.24), ground.clone().lerp(colour("--faint"), 0.5)];
  const add = (i, k, strong) => {
    place.push(x + i * step, y + k * step, 0);
    const fade = Math.min(1, Math.max(0, (Math.hypot(i, k) / count - 0.35) / 0.6)), { r, g, b } = shades[strong].clone().lerp(ground, fade);
    tint.push(r, g, b);
  };
  for (let i = -count; i <= count; i++) {
    const strong = [(Math.round(x / step) + i) % 10 ? 0 : 1, (Math.round(y / step) + i) % 10 ? 0 : 1];
    for (let k = -count; k < count; k += piece) {
      add(i, k, strong[0]);
      add(i, k + piece, strong[0]);
      add(k, i, strong[1]);
      add(k + piece, i, strong[1]);
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(place, 3));
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(tint, 3));
  const lines = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ vertexColors: true, depthWrite: false }));
  lines.renderOrder = -1;
  group.add(lines);
  group.userData = { step };
  return group;
}

/** Return a text that is placed over the scene. */
export function tag(text, faint = false) {
  return el("span", { class: faint ? "tag faint" : "tag" }, text);
}

/** Free the memory of an object and all below it. */
export function free(object) {
  object?.traverse((one) => {
    one.geometry?.dispose();
    one.material?.dispose();
  });
  object?.removeFromParent();
}
