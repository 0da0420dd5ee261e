// Kinds of panels; each is loaded when the first of its kind is shown.

import { sentence } from "./sentence.js";

export const PANELS = {
  plot: () => import("./plot.js"),
  xy: () => import("./xy.js"),
  spectrogram: () => import("./spectrogram.js"),
  array: () => import("./array.js"),
  text: () => import("./text.js"),
  message: () => import("./message.js"),
  parameters: () => import("./parameters.js"),
  problems: () => import("./problems.js"),
  table: () => import("./table.js"),
  frames: () => import("./frames.js"),
  diagnostics: () => import("./diagnostics.js"),
  findings: () => import("./findings.js"),
  compare: () => import("./compare.js"),
  difference: () => import("./difference.js"),
  map: () => import("./map.js"),
  scene: () => import("./scene.js"),
  picture: () => import("./picture.js"),
};

/**
 * Make a panel in an element, and keep it informed of its size, the window and the cursor.
 * @param {string} kind
 * @param {Object} settings what `settings()` of the panel returned
 * @param {Object} context {api, bus, logs, time, theme, log, say, data}
 * @param {HTMLElement} element
 * @returns {Promise<Object>} the panel; its `dispose` also ends the connections
 */
export async function mount(kind, settings, context, element) {
  const { bus } = context;
  let panel;
  try {
    if (!Object.hasOwn(PANELS, kind)) throw new Error(`there is no panel "${kind}"`);
    panel = (await PANELS[kind]()).create(context, settings);
    await panel.mount(element);
  } catch (error) {
    element.replaceChildren(sentence(`This panel could not be opened: ${error.message}`, true));
    element.dataset.ready = "error";
    console.warn(`panel ${kind}:`, error);
    return { kind, title: kind, dispose() {}, settings: () => settings };
  }
  // A panel that is scrolled away is told nothing until it is seen again.
  const tell = (name, ...values) => element.isConnected && !element.dataset.away && panel[name]?.(...values);
  let told = "";
  const resize = () => {
    const { clientWidth: width, clientHeight: height } = element, now = `${width} ${height}`;
    if (!width || !height || element.dataset.away || now === told) return;
    told = now;
    tell("resize", width, height);
  };
  const size = new ResizeObserver(resize);
  size.observe(element);
  const offs = [
    bus.on("window", ({ from, to }) => tell("window", from, to)),
    bus.on("cursor", (axis) => tell("cursor", axis)),
  ];
  const now = () => {
    const window = bus.last("window");
    if (window) tell("window", window.from, window.to);
    tell("cursor", bus.last("cursor"));
  };
  // While a panel is away it may be made, and its size may change.
  panel.seen = () => { now(); resize(); };
  now();
  const dispose = panel.dispose?.bind(panel);
  panel.kind = kind;
  panel.dispose = () => {
    size.disconnect();
    for (const off of offs) off();
    dispose?.();
  };
  return panel;
}
