// What a report has besides its charts: the strip of modes, the place on the track, jumps to a time, print and theme.

const BAND_LIGHT = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8c6d1f", "#6a51a3"];
const BAND_DARK = ["#56B4E9", "#E69F00", "#2CC295", "#CC79A7", "#F0E442", "#D55E00", "#c2a35c", "#a89ad6"];
const LEVELS = { mode: 0, armed: 1, air: 1, failsafe: 2, collision: 2 };

function paintBands() {
  const colors = isDark() ? BAND_DARK : BAND_LIGHT, names = new Map();
  for (const band of data.bands) {
    if (band.kind === "mode" && !names.has(band.label)) names.set(band.label, colors[names.size % colors.length]);
    const bad = band.kind === "failsafe" || band.kind === "collision";
    band.tint = bad ? style("--bad") : band.kind === "note" ? style("--accent") : names.get(band.kind === "mode" ? band.label : "") ?? style("--faint");
    band.color = bad || band.kind === "mode" ? band.tint : "";
    band.alpha = bad ? 0.22 : 0.09;
  }
}

// The columns of charts: a strip stands above each, with the edges of its charts.
function columns() {
  const charts = document.querySelector(".charts");
  return charts ? getComputedStyle(charts).gridTemplateColumns.split(" ").length : 1;
}

function drawStrip() {
  const strip = document.getElementById("strip");
  if (!strip) return;
  const strips = Array.from({ length: columns() }, () => {
    const one = document.createElement("div");
    one.className = "bands";
    one.append(...stripRows());
    return one;
  });
  strip.replaceChildren(...strips);
  strip.hidden = !strips[0].children.length;
}

// One row of the strip for each kind of band, and one for text of warnings and errors.
function stripRows() {
  const kinds = [...new Set(data.bands.map((band) => band.kind))].sort((a, b) => (LEVELS[a] ?? 3) - (LEVELS[b] ?? 3));
  const [from, to] = shownSpan;
  const place = (at) => `${(100 * Math.min(Math.max((at - from) / (to - from), 0), 1)).toFixed(3)}%`;
  const rows = kinds.map((kind) => {
    const line = document.createElement("div");
    line.className = "row";
    for (const band of data.bands) {
      if (band.kind !== kind || band.to <= from || band.from >= to) continue;
      const piece = document.createElement("span");
      piece.textContent = band.label;
      piece.title = `${band.label}: ${moment(band.from)} to ${moment(band.to)}\n${band.source}`;
      piece.style.left = place(band.from);
      piece.style.width = `calc(${place(band.to)} - ${place(band.from)})`;
      piece.style.setProperty("--tint", band.tint);
      line.append(piece);
    }
    return line;
  });
  if (data.marks.length) {
    const line = document.createElement("div");
    line.className = "row marks";
    for (const mark of data.marks) {
      if (mark.t < from || mark.t > to) continue;
      const tick = document.createElement("i");
      tick.title = `${moment(mark.t)} ${mark.text}`;
      tick.className = mark.level <= 3 ? "bad" : "warn";
      tick.style.left = place(mark.t);
      line.append(tick);
    }
    rows.push(line);
  }
  return rows;
}

function showPlace(at) {
  const dot = document.getElementById("here"), track = data.track;
  if (!dot || !track) return;
  const i = at == null ? -1 : Math.min(row(track.times, at), track.times.length - 1);
  dot.setAttribute("cx", i < 0 ? -99 : track.x[i]);
  dot.setAttribute("cy", i < 0 ? -99 : track.y[i]);
}

// Shows the tenth of the time around a moment, or less if the window is shorter already.
function showMoment(at) {
  const width = Math.min((data.span[1] - data.span[0]) / 10, shownSpan[1] - shownSpan[0]);
  const from = Math.min(Math.max(at - width / 2, data.span[0]), data.span[1] - width);
  document.getElementById("charts")?.scrollIntoView();
  showSpan(from, from + width);
  showPlace(at);
}

// Shows an interval with what came before it, and the chart that shows it.
function showInterval(at, to, chart) {
  const [first, last] = data.span, share = 0.15 * (last - first), inside = (one) => Math.min(Math.max(one, first), last);
  const from = inside(at - Math.max(Math.min(4, share), 0.5 * (to - at))), end = inside(to + Math.max(Math.min(2, share), 0.2 * (to - at)));
  const folded = chart?.closest("details");
  if (folded) folded.open = true;
  (chart ?? document.getElementById("charts"))?.scrollIntoView();
  if (end > from) showSpan(from, end);
  showPlace(at);
}

function redraw() {
  paintBands();
  draw();
}

document.addEventListener("logreel-window", drawStrip);
addEventListener("resize", () => {
  if (columns() !== document.querySelectorAll("#strip .bands").length) drawStrip();
});
document.addEventListener("logreel-cursor", (event) => showPlace(event.detail));
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.at");
  if (!button) return;
  const { at, to, chart } = button.dataset;
  if (to == null) showMoment(Number(at)); else showInterval(Number(at), Number(to), document.getElementById(chart));
});
document.getElementById("theme").onclick = () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  redraw();
};
system.addEventListener("change", redraw);
// Paper shows what is folded, too; browsers that know ::details-content do that by the style sheet.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
redraw();
document.documentElement.dataset.ready = "true";
