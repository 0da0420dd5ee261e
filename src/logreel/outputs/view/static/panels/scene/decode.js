// Answers about a scene: a JSON head and the numbers behind it.

const TYPES = { float32: Float32Array, uint8: Uint8Array };

/** Return {fixed_frame, frames, items}; the arrays of items are views of the answer. */
export function decode(buffer) {
  const size = new DataView(buffer).getUint32(0, true), start = 4 + size;
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  for (const item of head.items) {
    for (const [name, { type, shape, at }] of Object.entries(item.arrays)) {
      item.arrays[name] = new TYPES[type](buffer, start + at, shape.reduce((all, n) => all * n, 1));
    }
  }
  return head;
}
