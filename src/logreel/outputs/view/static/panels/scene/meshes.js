// Meshes of robots: each file is asked for once, and drawn where the links are.

import * as THREE from "/vendor/three/three.module.min.js";
import { decode } from "./decode.js";

/** Numbers of one mesh in an item: position, rotation, scale, number of its file. */
const WIDE = 11;

export class Meshes {
  /**
   * @param {Object} api
   * @param {Function} drawn called when another mesh can be drawn
   */
  constructor(api, drawn) {
    this.api = api;
    this.drawn = drawn;
    this.geometries = new Map();
    this.notes = [];
  }

  /** Add the meshes of an item to its object; those that are not there yet come later. */
  add(object, { topic, t, arrays: { mesh, mesh_colour: colours } }, log) {
    for (let i = 0; i < mesh.length / WIDE; i++) {
      const own = mesh.subarray(WIDE * i, WIDE * (i + 1)), [r, g, b, a] = colours.subarray(4 * i, 4 * i + 4);
      this.#geometry(log, topic, t, own[10]).then((geometry) => {
        if (!geometry || !object.parent) return;
        const colour = new THREE.Color().setRGB(r / 255, g / 255, b / 255, THREE.SRGBColorSpace);
        // Materials go with the object; geometries are shared and stay.
        const found = new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ color: colour, side: THREE.DoubleSide, transparent: a < 255, opacity: Math.max(0.15, a / 255) }));
        found.position.set(own[0], own[1], own[2]);
        found.quaternion.set(own[3], own[4], own[5], own[6]).normalize();
        found.scale.set(own[7], own[8], own[9]);
        found.frustumCulled = false;
        object.add(found);
        this.drawn();
      });
    }
  }

  #geometry(log, topic, at, file) {
    const key = `${log} ${topic} ${file}`;
    if (!this.geometries.has(key)) this.geometries.set(key, this.#load(log, topic, at, file));
    return this.geometries.get(key);
  }

  async #load(log, topic, at, file) {
    try {
      const { items: [{ arrays: { position } }] } = decode(await this.api.bytes(`/api/logs/${log}/mesh`, { topic, at, file }));
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(position, 3));
      geometry.computeVertexNormals();
      return geometry;
    } catch (error) {
      this.notes.push(error.message);
      this.drawn();
      return null;
    }
  }

  dispose() {
    for (const one of this.geometries.values()) one.then((geometry) => geometry?.dispose());
    this.geometries.clear();
  }
}
