// The one way by which parts of the page speak with each other.
//
// Kinds: cursor and cursor2 (axis ns or null), hover (axis ns or null: where the pointer is), window ({from, to}),
// select ({log, topic, field}), theme ("light" or "dark"), clock ("start", "utc" or "log"), shift (logs were moved against
// each other), playing ({on, rate}), grown ({log}), ready ({log, topic, field}: better curves), marks (filter of markers), quiet (a panel that has nothing to show for this log),
// reveal ({log, topic}: show it in the tree), overview (log: there is a new one), findings ({log: answer}), notes (log: there are others).

/** Return a new bus: `on(kind, listener)` returns a function that ends it, `send(kind, value)`, `last(kind)`. */
export function makeBus() {
  const listeners = new Map(), values = new Map();
  return {
    on(kind, listener) {
      if (!listeners.has(kind)) listeners.set(kind, new Set());
      listeners.get(kind).add(listener);
      return () => listeners.get(kind).delete(listener);
    },
    send(kind, value) {
      values.set(kind, value);
      for (const listener of [...(listeners.get(kind) ?? [])]) {
        try {
          listener(value);
        } catch (error) {
          console.error(error); // One part that fails must not stop the others.
        }
      }
    },
    last(kind) {
      return values.get(kind) ?? null;
    },
  };
}
