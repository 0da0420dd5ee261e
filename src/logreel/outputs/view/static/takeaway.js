// Take away: pictures of plots, tables of what is visible, the interval as a log, the link, the layout.

import { css, save } from "./dom.js";
import { plotSvg } from "./drawing.js";
import { TITLES } from "./plots.js";
import { wish } from "./series.js";

/** Pixels of a picture for each of the screen. */
const SCALE = 2;
/** Panels of which a page gets a picture: its longer side in pixels, characters of one, and of all that a page gets. */
const STILLS = new Set(["map", "scene", "picture", "spectrogram", "difference"]), MOST_PIXELS = 1600, STILL = 2 << 20, PAGE = 5 << 20;

/** The file name that the server proposes, without folders. */
function proposed(response, otherwise) {
  const header = response.headers.get("Content-Disposition") ?? "";
  const found = /filename\*=UTF-8''([^;]+)/i.exec(header) ?? /filename="?([^";]+)"?/i.exec(header);
  return found ? decodeURIComponent(found[1]).replace(/[/\\]/g, "_") : otherwise;
}

export function takeaway(context) {
  const { api, view, time, state, say } = context;

  /** Save CSV, Parquet or a log of each log that is visible; tables have all curves in sight, also derived ones. */
  async function tables(kind) {
    const series = context.plots.series({ inSight: true }).filter((one) => one.field || one.function || one.sql);
    for (const log of context.logs) {
      const own = series.filter((one) => one.log === log.id);
      if (kind !== "log" && !own.length) continue;
      const derived = own.some((one) => one.function || one.sql || one.where);
      const names = [...new Set(own.map((one) => (derived ? JSON.stringify(wish(one)) : `${one.topic}.${one.field}`)))];
      const from = Math.round(time.toLog(log.id, view.window.from)), to = Math.round(time.toLog(log.id, view.window.to));
      // A log keeps all channels of the interval; its last message is part of it.
      const whole = from <= 0 && to >= log.duration;
      const parameters = { kind, ...(kind === "log" ? {} : { s: names }), ...(whole ? {} : { from, to: to >= log.duration ? null : to }) };
      say(`Writing ${kind === "log" ? `a part of ${log.name}` : kind.toUpperCase()} …`);
      try {
        const response = await api.fetch(`/api/logs/${log.id}/export`, parameters);
        save(await response.blob(), proposed(response, `${log.name}.${kind}`));
        say(`Saved ${proposed(response, log.name)}.`);
      } catch (error) {
        say(error.message);
      }
    }
    if (kind !== "log" && !series.length) say("There is no plot in sight whose values could be saved.");
  }

  const nameFor = (panel, suffix) => `${panel.title.replace(/[^\w.-]+/g, "_") || "plot"}.${suffix}`;

  /** Save a plot as a drawing of what is seen. */
  function svg(panel) {
    if (!panel?.drawn || !panel.plot) return say("Only plots of curves over time can be saved as SVG.");
    save(new Blob([plotSvg(panel, context).text], { type: "image/svg+xml" }), nameFor(panel, "svg"));
    return say("Saved the plot as SVG.");
  }

  /** Save a plot as a picture of twice its size, with all that the drawing has; other panels as they are on the screen. */
  async function png(panel) {
    if (!panel?.drawn || !panel.plot) return screen(panel);
    const { text, width, height } = plotSvg(panel, context), sheet = document.createElement("canvas"), image = new Image();
    image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    try {
      await image.decode();
      Object.assign(sheet, { width: SCALE * width, height: SCALE * height });
      sheet.getContext("2d").drawImage(image, 0, 0, sheet.width, sheet.height);
    } catch {
      return say("This browser cannot draw the plot as a picture; save it as SVG.");
    } finally {
      URL.revokeObjectURL(image.src);
    }
    return sheet.toBlob((blob) => { save(blob, nameFor(panel, "png")); say("Saved the plot as PNG."); });
  }

  /** Save a panel with its title: of twice its size where it can be drawn again, else as it is on the screen. */
  function screen(panel) {
    const drawn = panel?.picture?.(SCALE), canvas = drawn ?? panel?.element?.querySelector("canvas");
    if (!canvas) return say("The chosen panel has no picture.");
    const ratio = drawn ? SCALE : devicePixelRatio, bar = 26 * ratio;
    const sheet = document.createElement("canvas");
    sheet.width = canvas.width;
    sheet.height = canvas.height + bar + 20 * ratio;
    const pen = sheet.getContext("2d");
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.fillStyle = css("--text");
    pen.font = `600 ${12 * ratio}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    pen.fillText(panel.title, 8 * ratio, bar / 2);
    pen.font = `${11 * ratio}px system-ui, sans-serif`;
    pen.drawImage(canvas, 0, bar);
    pen.fillStyle = css("--faint");
    pen.fillText(`${context.log(panel.series?.()[0]?.log).name}   ${time.full(view.window.from)} to ${time.full(view.window.to)}`, 8 * ratio, sheet.height - 10 * ratio);
    return sheet.toBlob((blob) => { save(blob, nameFor(panel, "png")); say("Saved the panel as PNG."); });
  }

  /** Return the settings of a panel, with a picture of it where only the viewer draws it; all of them have room in one page. */
  function sent(kind, panel, settings, title, most) {
    const told = { kind, ...(panel?.settings?.() ?? settings), title: panel?.title ?? title };
    if (!STILLS.has(kind) || !panel?.element) return told;
    const { clientWidth: width, clientHeight: height } = panel.element, scale = Math.min(SCALE, MOST_PIXELS / Math.max(width, height, 1));
    const drawn = panel.still?.(scale) ?? panel.picture?.(scale) ?? (kind === "difference" ? panel.element.querySelector("canvas") : null);
    if (!drawn?.width || !drawn.height) return told;
    const sheet = document.createElement("canvas"), pen = sheet.getContext("2d");
    Object.assign(sheet, { width: drawn.width, height: drawn.height });
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(drawn, 0, 0);
    const still = [0.9, 0.7, 0.4].map((quality) => sheet.toDataURL("image/webp", quality)).find((one) => one.length <= most);
    return { ...told, ...(still ? { still } : {}) };
  }

  /** Return what a panel shows of one log, without naming the log; null for nothing. */
  function share(panel, id) {
    const of = (one) => (one?.log ?? context.logs[0].id) === id, own = (one) => { const { log: _, ...rest } = one; return rest; };
    if (panel.kind === "xy") return of(panel.x) ? { ...panel, x: panel.x && own(panel.x), y: panel.y && own(panel.y) } : null;
    if (panel.kind !== "plot") return of(panel) ? own(panel) : null;
    const series = (panel.series ?? []).filter(of).map(own);
    return series.length ? { ...own(panel), series } : null;
  }

  /** Save what is seen of each log as a page that needs no viewer: panels in sight, findings, notes, track and text of the window. */
  async function offline() {
    const room = context.plots.element.getBoundingClientRect();
    const frames = context.plots.frames.filter(({ element }) => { const box = element.getBoundingClientRect(); return box.bottom > room.top + 8 && box.top < room.bottom - 8; });
    const seen = frames.map(({ kind, panel, settings, title }) => [kind, panel, settings, title.textContent]);
    for (const group of [context.upper, context.lower]) for (const [kind, panel] of group?.panels ?? []) if (group.place.clientWidth) seen.push([kind, await panel, {}, TITLES[kind] ?? kind]);
    const most = Math.min(STILL, PAGE / seen.length);
    const panels = seen.map((one) => sent(...one, most));
    for (const log of context.logs) {
      const own = panels.map((panel) => share(panel, log.id)).filter(Boolean);
      const [from, to] = view.isWhole() ? [null, null] : [view.window.from, view.window.to].map((at) => Math.round(time.toLog(log.id, at)));
      say(`Making a page of ${log.name} …`);
      try {
        const at = view.cursor == null ? null : Math.round(time.toLog(log.id, view.cursor));
        const content = { panels: own, from, to: to >= log.duration ? null : to, at, utc: time.clock === "utc", ...(context.notes.why(log.id) ? { notes: context.notes.of(log.id) } : {}) };
        const response = await api.fetch(`/api/logs/${log.id}/document`, {}, { content });
        save(new Blob([await response.blob()], { type: "text/html" }), `${log.name}.html`);
        say("Saved the page: it opens without a viewer and loads nothing.");
      } catch (error) {
        say(error.message);
      }
    }
  }

  async function link() {
    const address = `${location.origin}${location.pathname}#token=${encodeURIComponent(api.token)}&${await state.fragment()}`;
    try {
      await navigator.clipboard.writeText(address);
      say("Copied. It opens this view as long as this viewer runs; elsewhere, put what follows # behind the address of a viewer of the same files.");
    } catch {
      prompt("Copy this link:", address);
    }
  }

  function layout() {
    save(new Blob([JSON.stringify(context.layouts.current(), null, 1)], { type: "application/json" }), "layout.json");
    say("Saved. Open it with logreel view FILE --layout layout.json.");
  }

  const part = () => (view.isWhole() ? "the whole log" : "the visible interval");
  return {
    png,
    svg,
    layout,
    entries() {
      const chosen = context.plots.chosen?.panel, { upper } = context;
      return [
        { text: "Chosen plot as PNG", run: () => png(chosen), off: !chosen },
        { text: "Chosen plot as SVG", run: () => svg(chosen), off: !chosen?.drawn },
        ...(upper?.chosen === "map" ? [{ text: "Map as PNG", run: async () => png(await upper.panels.get("map")) }] : []),
        { text: "Fields in sight as CSV", run: () => tables("csv") },
        { text: "Fields in sight as Parquet", run: () => tables("parquet") },
        { text: `${part()[0].toUpperCase()}${part().slice(1)} as a log`, run: () => tables("log") },
        null,
        { text: "What is seen as a page", run: offline },
        { text: "Copy the link to this view", run: link },
        { text: "Save the layout as a file", run: layout },
        { text: "Notes as a file", run: () => context.notes.download(), off: !context.logs.some(({ id }) => context.notes.of(id).length) },
      ];
    },
  };
}
