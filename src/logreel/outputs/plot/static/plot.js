"use strict";
// Draws the curves that the page carries as JSON: {utc, origin, span, panels: [{title, curves: [{name, unit, times, values}]}]}.
// Times are float64 seconds since the origin, values float64, both as base64 of little-endian bytes.

const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
const DARK = ["#56B4E9", "#E69F00", "#2CC295", "#CC79A7", "#F0E442", "#D55E00", "#FFFFFF"];
const HEIGHT = 210;

const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const plots = [];

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Float64Array(bytes.buffer);
}

// The first row whose time is not below the given one.
function row(times, at) {
  let lo = 0, hi = times.length;
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if (times[middle] < at) lo = middle + 1; else hi = middle;
  }
  return lo;
}

// The points between two times, and one at each side: at most four for each pixel (first, least, greatest, last).
function visible(curve, from, to, pixels) {
  const { times, values } = curve;
  const lo = Math.max(0, row(times, from) - 1), hi = Math.min(times.length, row(times, to) + 1);
  if (hi - lo <= 4 * pixels) return [Array.from(times.subarray(lo, hi)), shown(values.subarray(lo, hi))];
  const keep = [], width = (to - from) / pixels;
  for (let i = lo; i < hi;) {
    const cell = Math.floor((times[i] - from) / width);
    let j = i, least = i, greatest = i;
    for (; j < hi && Math.floor((times[j] - from) / width) === cell; j++) {
      if (values[j] < values[least] || Number.isNaN(values[least])) least = j;
      if (values[j] > values[greatest] || Number.isNaN(values[greatest])) greatest = j;
    }
    keep.push(...[...new Set([i, least, greatest, j - 1])].sort((a, b) => a - b));
    i = j;
  }
  return [keep.map((k) => times[k]), shown(keep.map((k) => values[k]))];
}

// Null is a gap.
function shown(values) {
  return Array.from(values, (v) => (Number.isFinite(v) ? v : null));
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function value(number) {
  return number == null ? "–" : Number(number.toPrecision(7)).toString();
}

function moment(seconds) {
  if (!data.utc) return seconds.toFixed(3) + " s";
  return new Date(seconds * 1000).toISOString().slice(0, -1).replace("T", " ");
}

// Times of day of the marks of the axis, with decimals where they are close to each other.
function clock(plot, marks) {
  const apart = marks.length > 1 ? marks[1] - marks[0] : 1;
  const digits = apart < 0.01 ? 3 : apart < 1 ? 2 : 0;
  return marks.map((at) => new Date(at * 1000).toISOString().slice(11, digits ? 20 + digits : 19));
}

function options(panel, width, sync) {
  const colors = dark.matches ? DARK : LIGHT;
  const axis = { stroke: style("--ink"), grid: { stroke: style("--grid"), width: 1 }, ticks: { stroke: style("--grid"), width: 1 } };
  return {
    width,
    height: HEIGHT,
    cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false } },
    scales: { x: { time: data.utc, min: data.span[0], max: data.span[1] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
    axes: [{ ...axis, size: 34, ...(data.utc ? { values: clock, space: 90 } : {}) }, { ...axis, size: 64 }],
    legend: { live: true },
    series: [
      { label: data.utc ? "UTC" : "time", value: (_, at) => (at == null ? "–" : moment(at)) },
      ...panel.curves.map((curve, i) => ({
        label: curve.name + (curve.unit ? ` [${curve.unit}]` : ""),
        stroke: colors[i % colors.length],
        width: 1,
        points: { show: curve.times.length < 200 },
        value: (_, v) => value(v),
      })),
    ],
    hooks: { setScale: [(plot, key) => key === "x" && !sync.busy && zoom(plot, sync)] },
  };
}

// Shows the same interval in all plots, with the points that it needs.
function zoom(from, sync) {
  sync.busy = true;
  const { min, max } = from.scales.x;
  for (const { plot, panel } of plots) {
    plot.batch(() => {
      plot.setData(joined(panel, min, max, plot.width), false);
      plot.setScale("x", { min, max });
      plot.setScale("y", { min: null, max: null });
    });
  }
  sync.busy = false;
}

function joined(panel, min, max, width) {
  const tables = panel.curves.map((curve) => visible(curve, min, max, Math.max(100, width)));
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

function draw() {
  const place = document.getElementById("panels");
  place.replaceChildren();
  plots.length = 0;
  const sync = { key: "time", busy: false };
  for (const panel of data.panels) {
    const heading = document.createElement("h2");
    heading.textContent = panel.title;
    const box = document.createElement("section");
    box.append(heading);
    place.append(box);
    if (panel.curves.every((curve) => curve.times.length === 0)) {
      const empty = document.createElement("div");
      empty.className = "empty";
      empty.textContent = "no messages";
      box.append(empty);
      continue;
    }
    const width = place.clientWidth;
    const plot = new uPlot(options(panel, width, sync), joined(panel, data.span[0], data.span[1], width), box);
    plots.push({ plot, panel });
  }
  const whole = () => plots.length && plots[0].plot.setScale("x", { min: data.span[0], max: data.span[1] });
  for (const { plot } of plots) plot.over.addEventListener("dblclick", whole);
  document.getElementById("whole").onclick = whole;
}

for (const panel of data.panels) {
  for (const curve of panel.curves) {
    curve.times = numbers(curve.times);
    curve.values = numbers(curve.values);
  }
}
draw();
dark.addEventListener("change", draw);
addEventListener("resize", () => {
  const width = document.getElementById("panels").clientWidth;
  for (const { plot } of plots) plot.setSize({ width, height: HEIGHT });
});
addEventListener("keydown", (event) => event.key === "0" && document.getElementById("whole").click());
