// The camera: turns about a point, by pointer, wheel and keys. z is up.

import * as THREE from "/vendor/three/three.module.min.js";
import { drag } from "../../dom.js";

const HIGH = Math.PI / 2 - 0.01, KEY = 0.12;

export class Orbit {
  /**
   * @param {HTMLElement} element takes pointer and keys
   * @param {Function} changed called after each motion
   */
  constructor(element, changed) {
    this.camera = new THREE.PerspectiveCamera(45, 1, 0.01, 1e5);
    this.camera.up.set(0, 0, 1);
    this.target = new THREE.Vector3();
    this.turn = -2.2;
    this.tilt = 0.6;
    this.far = 20;
    this.changed = changed;
    this.moved = false;
    this.#listen(element);
    this.apply();
  }

  /** Put the camera where turn, tilt and distance say. */
  apply() {
    const { camera, target, far } = this, flat = Math.cos(this.tilt) * far;
    camera.position.set(target.x + Math.cos(this.turn) * flat, target.y + Math.sin(this.turn) * flat, target.z + Math.sin(this.tilt) * far);
    camera.near = far / 200;
    camera.far = Math.max(far * 200, 2000);
    camera.lookAt(target);
    camera.updateProjectionMatrix();
  }

  rotate(dx, dy) {
    this.turn -= dx;
    this.tilt = Math.max(-HIGH, Math.min(HIGH, this.tilt + dy));
    this.#done();
  }

  /** Move the point that is looked at, in parts of the height of the picture. */
  pan(dx, dy) {
    const reach = 2 * Math.tan((this.camera.fov * Math.PI) / 360) * this.far;
    const right = new THREE.Vector3().setFromMatrixColumn(this.camera.matrix, 0), up = new THREE.Vector3().setFromMatrixColumn(this.camera.matrix, 1);
    this.target.addScaledVector(right, -dx * reach).addScaledVector(up, dy * reach);
    this.shifted = true;
    this.#done();
  }

  zoom(factor) {
    this.far = Math.max(0.05, Math.min(1e5, this.far / factor));
    this.#done();
  }

  #done() {
    this.moved = true;
    this.apply();
    this.changed();
  }

  #listen(element) {
    element.addEventListener("contextmenu", (event) => event.preventDefault());
    element.addEventListener("pointerdown", (event) => {
      if (event.button > 2) return;
      element.focus({ preventScroll: true });
      const panning = event.button !== 0 || event.shiftKey || event.ctrlKey;
      let { clientX, clientY } = event;
      drag(event, (now) => {
        const dx = (now.clientX - clientX) / element.clientHeight, dy = (now.clientY - clientY) / element.clientHeight;
        if (panning) this.pan(dx, dy); else this.rotate(dx * 3, dy * 3);
        ({ clientX, clientY } = now);
      });
    });
    element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0014)));
    }, { passive: false });
    element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const pan = event.shiftKey;
      const run = {
        ArrowLeft: () => (pan ? this.pan(0.08, 0) : this.rotate(-KEY, 0)), ArrowRight: () => (pan ? this.pan(-0.08, 0) : this.rotate(KEY, 0)),
        ArrowUp: () => (pan ? this.pan(0, 0.08) : this.rotate(0, KEY)), ArrowDown: () => (pan ? this.pan(0, -0.08) : this.rotate(0, -KEY)),
        "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8),
      }[event.key];
      if (!run) return;
      event.preventDefault();
      event.stopPropagation();
      run();
    });
  }
}
