// A derived curve: a function of a field, or an SQL expression over the columns of a topic.

import { button, el } from "../dom.js";

/**
 * Ask for a derived curve.
 * @param {Object} context
 * @param {Object|undefined} near a curve that is there; it is the proposal
 * @param {Function} done called with the new series
 */
export async function derive(context, near, done) {
  const { api, data, logs, log } = context;
  let functions = [];
  try { functions = await api.get("/api/functions"); } catch (error) { context.say(error.message); }
  const id = near?.log ?? logs[0].id, channels = await data.channels(id).catch(() => []);
  const topic = el("select", { "aria-label": "Topic", on: { change: () => fields() } }, channels.map((one) => el("option", { value: one.topic, selected: one.topic === near?.topic }, one.topic)));
  const field = el("select", { "aria-label": "Field" });
  const applied = el("select", { "aria-label": "Function", on: { change: () => { help.textContent = chosen()?.text ?? about; } } },
    el("option", { value: "" }, "SQL expression"), functions.map((one) => el("option", { value: one.name }, one.name)));
  const sql = el("textarea", { placeholder: "sqrt(x * x + y * y)", "aria-label": "SQL expression over the columns of the topic", spellcheck: "false" });
  const number = el("input", { type: "number", step: "any", min: "0", "aria-label": "Number of the function" });
  const about = "An SQL expression over the fields of the topic, as for --where. Fields of other topics have their last value: battery_status.voltage_v * current_a.";
  const help = el("p", { class: "faint small" }, about);

  function chosen() {
    return functions.find((one) => one.name === applied.value);
  }

  function fields() {
    const found = channels.find((one) => one.topic === topic.value)?.fields.filter((one) => one.number !== false) ?? [];
    // Functions of vectors take the field without its index.
    const arrays = [...new Set(found.map(({ path }) => path.replace(/\[\d+\]$/, "")).filter((path) => !found.some((one) => one.path === path)))];
    field.replaceChildren(...[...found.map(({ path }) => path), ...arrays].map((path) => el("option", { value: path, selected: path === near?.field }, path)));
  }
  fields();
  const what = el("span", {}, "Number");
  const rows = { field: el("label", {}, el("span", {}, "Field"), field), number: el("label", {}, what, number), sql: el("label", {}, el("span", {}, "Expression"), sql) };
  const kind = () => {
    rows.field.hidden = !applied.value;
    rows.sql.hidden = Boolean(applied.value);
    rows.number.hidden = !chosen()?.number;
    what.textContent = chosen()?.number || "Number";
    number.value = chosen()?.usual ?? "";
  };
  applied.addEventListener("change", kind);
  kind();
  const form = el("form", { class: "inside", method: "dialog" },
    el("h2", {}, `Derived curve of ${log(id).name}`),
    el("label", {}, el("span", {}, "Topic"), topic), el("label", {}, el("span", {}, "Function"), applied), rows.field, rows.number, rows.sql, help,
    el("div", { class: "row" }, button("Cancel", "Cancel", () => dialog.close()), button("Add the curve", "Add the curve", () => add(), { class: "main" })));
  const dialog = el("dialog", { "aria-label": "Derived curve", on: { close: () => dialog.remove() } }, form);
  form.addEventListener("submit", (event) => { event.preventDefault(); add(); });

  async function add() {
    const base = { topic: topic.value, ...(id === logs[0].id ? {} : { log: id }) };
    const own = applied.value ? { field: field.value, function: chosen().number && number.value ? `${applied.value} ${number.value}` : applied.value } : { sql: sql.value.trim() };
    if (own.sql === "") return sql.focus();
    // What cannot be drawn is said here, where it can be put right.
    const why = await api.series(id, { topic: topic.value, ...own }, { from: 0, to: log(id).duration, px: 16 }).then(({ metadata }) => metadata.error, (error) => error.message);
    if (!dialog.open) return undefined;
    if (why) {
      help.textContent = why;
      help.className = "bad small";
      help.setAttribute("role", "alert");
      return (own.sql ? sql : field).focus();
    }
    done({ ...base, ...own });
    return dialog.close();
  }
  document.body.append(dialog);
  dialog.showModal();
}
