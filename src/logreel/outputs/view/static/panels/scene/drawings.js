// What programs draw: grids of occupancy, and markers.

import * as THREE from "/vendor/three/three.module.min.js";
import { colour } from "./shapes.js";

/** Values of cells that have no measurement, and more than 100. */
const UNKNOWN = 255;

/** A grid of cells on its plane: free ones light, occupied ones dark, those without a measurement faint. */
export function cells({ position, rotation, size, cells: values }) {
  const [width, height] = shapeOf(size, values.length), pixels = new Uint8Array(4 * values.length);
  const free = colour("--panel").lerp(colour("--text"), 0.12), taken = colour("--text");
  const shades = Array.from({ length: 101 }, (_, k) => free.clone().lerp(taken, k / 100)).map((one) => [one.r, one.g, one.b].map((part) => Math.round(255 * part)));
  const faint = colour("--faint");
  for (let i = 0; i < values.length; i++) {
    const value = values[i], known = value <= 100;
    pixels.set(known ? shades[value] : [255 * faint.r, 255 * faint.g, 255 * faint.b], 4 * i);
    pixels[4 * i + 3] = known ? 235 : value === UNKNOWN ? 40 : 120;
  }
  const texture = new THREE.DataTexture(pixels, width, height);
  texture.needsUpdate = true;
  const plane = new THREE.Mesh(new THREE.PlaneGeometry(size[0], size[1]), new THREE.MeshBasicMaterial({ map: texture, transparent: true, side: THREE.DoubleSide, depthWrite: false }));
  // The place of a grid is the corner of its first cell.
  plane.geometry.translate(size[0] / 2, size[1] / 2, 0);
  plane.position.set(...position.subarray(0, 3));
  plane.quaternion.set(...rotation.subarray(0, 4)).normalize();
  plane.renderOrder = -0.5;
  return plane;
}

/** Columns and rows of n cells that are as wide as high. */
function shapeOf(size, n) {
  const width = Math.max(1, Math.round(Math.sqrt((n * size[0]) / size[1])));
  return [width, Math.round(n / width)];
}

/** Markers: solids of one shape together, lines, triangles and points. */
export function markers({ shape, solid, solid_colour, segment, segment_colour, triangle, triangle_colour, point, point_colour }) {
  const group = new THREE.Group();
  for (const [number, geometry] of GEOMETRIES.entries()) {
    const rows = shape ? [...shape.keys()].filter((i) => shape[i] === number) : [];
    if (rows.length) group.add(solids(geometry(), rows, solid, solid_colour));
  }
  if (segment) group.add(coloured(new THREE.LineSegments(buffer(segment, segment_colour), new THREE.LineBasicMaterial({ vertexColors: true, transparent: true }))));
  if (point) group.add(coloured(new THREE.Points(buffer(point, point_colour), new THREE.PointsMaterial({ vertexColors: true, size: 4, sizeAttenuation: false, transparent: true }))));
  if (triangle) {
    const geometry = buffer(triangle, triangle_colour);
    geometry.computeVertexNormals();
    group.add(coloured(new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ vertexColors: true, side: THREE.DoubleSide, transparent: true }))));
  }
  return group;
}

/** Geometries of one metre, in the order of the numbers of an answer: arrow, cube, sphere, cylinder. */
const GEOMETRIES = [arrow, () => new THREE.BoxGeometry(1, 1, 1), () => new THREE.SphereGeometry(0.5, 20, 14), () => new THREE.CylinderGeometry(0.5, 0.5, 1, 20).rotateX(Math.PI / 2)];

/** An arrow along x: a shaft, and a head over its last quarter. */
function arrow() {
  const outline = [[0, 0], [0.25, 0], [0.25, 0.75], [0.5, 0.75], [0, 1]].map(([x, y]) => new THREE.Vector2(x, y));
  return new THREE.LatheGeometry(outline, 12).rotateZ(-Math.PI / 2);
}

function solids(geometry, rows, numbers, colours) {
  // Opacity is that of the material, so the least of all counts.
  const opacity = Math.min(...rows.map((i) => colours[4 * i + 3])) / 255;
  const found = new THREE.InstancedMesh(geometry, new THREE.MeshLambertMaterial({ transparent: opacity < 1, opacity: Math.max(0.15, opacity), side: THREE.DoubleSide }), rows.length);
  const place = new THREE.Vector3(), turn = new THREE.Quaternion(), scale = new THREE.Vector3(), matrix = new THREE.Matrix4(), shade = new THREE.Color();
  rows.forEach((i, at) => {
    const own = numbers.subarray(10 * i, 10 * i + 10);
    place.set(own[0], own[1], own[2]);
    turn.set(own[3], own[4], own[5], own[6]).normalize();
    scale.set(own[7], own[8], own[9]).clampScalar(1e-4, 1e5);
    found.setMatrixAt(at, matrix.compose(place, turn, scale));
    found.setColorAt(at, shade.setRGB(colours[4 * i] / 255, colours[4 * i + 1] / 255, colours[4 * i + 2] / 255, THREE.SRGBColorSpace));
  });
  found.frustumCulled = false;
  return found;
}

function buffer(places, colours) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(places, 3));
  geometry.setAttribute("color", new THREE.BufferAttribute(colours, 4, true));
  return geometry;
}

function coloured(object) {
  object.frustumCulled = false;
  return object;
}
