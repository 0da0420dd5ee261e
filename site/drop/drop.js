// The page: takes a file, asks the worker for what it says, and shows that as text. Nothing here reads the file.

const at = (id) => document.getElementById(id);
const SECOND = 1e9;

// Bytes of the logs after which the next one gets a worker of its own: memory that Python had is never given back.
const AFRESH = 256e6;

let worker, ready, file, used = 0, asked = [], links = [];

// ------------------------------------------------------------------------------------------ making elements

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  // Text stays text, whatever a log has in it.
  element.append(...children.map((child) => child ?? ""));
  return element;
}

function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const units = ["B", "kB", "MB", "GB"];
  let unit = 0;
  while (bytes >= 1000 && unit < 3) [bytes, unit] = [bytes / 1000, unit + 1];
  return `${unit ? bytes.toPrecision(3) : bytes} ${units[unit]}`;
}

const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const plain = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
const after = (time, start) => (time === null || start === null ? "" : `+${((time - start) / SECOND).toFixed(1)} s`);

function table(head, rows, right) {
  const cell = (tag) => (text, i) => make(tag, right.includes(i) ? { class: "right" } : {}, text);
  return make("div", { class: "wide" }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map(cell("th")))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell("td")))))));
}

// ------------------------------------------------------------------------------------------ what is going on

function say(text, share) {
  at("status").textContent = text;
  at("progress").hidden = share === undefined;
  if (share === null) at("progress").removeAttribute("value");
  else if (share !== undefined) at("progress").value = share;
}

function complain(text) {
  at("error").hidden = !text;
  at("error").textContent = text;
}

function busy(is) {
  at("cancel").hidden = !is;
  for (const id of ["recover", "report"]) at(id).disabled = is;
  document.documentElement.dataset.busy = is ? "yes" : "no";
}

function begin() {
  worker?.terminate();
  ready = false;
  used = 0;
  asked = [];
  worker = new Worker("worker.js", { type: "module" });
  worker.addEventListener("message", ({ data }) => take(data));
  worker.addEventListener("error", (event) => take({ failed: event.message || "the worker could not be started" }));
  say("Starting", 0);
}

const WORDS = {
  info: "Reading the index", summary: "Summarising", health: "Looking for faults",
  report: "Making the report", recover: "Recovering, and reading the new file back",
};

function next() {
  if (asked.length) {
    say(`${WORDS[asked[0]]} …`, null);
    busy(true);
    worker.postMessage({ ask: asked[0] });
  } else {
    say(`Done in ${((performance.now() - file.since) / 1000).toFixed(1)} s.`);
    busy(false);
    document.documentElement.dataset.done = file.handle.name;
  }
}

function take(data) {
  if (data.starting) {
    say(`${data.starting} …`, data.share);
  } else if (data.ready) {
    ready = true;
    document.documentElement.dataset.ready = "yes";
    at("lacking").replaceChildren(...data.lacking.map((text) => make("li", {}, `${plain(text)}.`)));
    at("about").dataset.versions = data.ready.versions;
    at("about").title = data.ready.versions;
    if (file) send();
    else say("Ready.");
  } else if (data.opened) {
    asked = ["info", "summary", "health"];
    next();
  } else if (data.progress) {
    say(`${WORDS[asked[0]]} …`, data.progress[1] ? data.progress[0] / data.progress[1] : null);
  } else if (data.failed) {
    complain(`logreel ended with an error of its own: ${data.failed}`);
    busy(false);
    const restart = ready;
    file = undefined;
    say("");
    // What fails at the start fails again.
    if (restart) begin();
  } else if (data.error !== undefined) {
    complain(data.error);
    if (data.ask) asked.shift();
    else file.refused = true;
    if (file.refused) {
      busy(false);
      say("This file cannot be read.");
      document.documentElement.dataset.done = file.handle.name;
    } else next();
  } else {
    asked.shift();
    SHOW[data.ask](data.answer);
    document.documentElement.dataset[data.ask] = ((performance.now() - file.since) / 1000).toFixed(3);
    next();
  }
}

function send() {
  say(`Reading ${file.handle.name} …`, null);
  worker.postMessage({ open: file.handle });
}

function choose(handle) {
  if (!handle) return;
  const running = file !== undefined && at("cancel").hidden === false;
  forget();
  complain("");
  file = { handle, since: performance.now() };
  busy(true);
  // A verb cannot be interrupted, but its worker can.
  if (running || !worker || (used && used + handle.size > AFRESH)) begin();
  used += handle.size;
  if (ready) send();
  else say("Starting; the log comes next …", null);
}

function forget() {
  at("log").hidden = true;
  for (const id of ["summary", "health", "channels", "problems", "results"]) at(id).replaceChildren();
  for (const link of links) URL.revokeObjectURL(link);
  links = [];
  for (const name of ["done", "info", "summary", "health", "report", "recover"]) delete document.documentElement.dataset[name];
}

// ------------------------------------------------------------------------------------------ what a log says

let start = null;

const SHOW = {
  info(told) {
    start = told.start_ns;
    at("name").textContent = file.handle.name;
    const length = told.start_ns === null ? [] : [`${((told.end_ns - told.start_ns) / SECOND).toFixed(1)} s`];
    at("facts").textContent = [
      `${told.format} ${told.version}`.trim(), size(told.size), ...length, count(told.messages, "message"), count(told.channel_count, "channel"),
    ].join(" · ");
    const rows = told.channels.map((channel) => [
      channel.topic, channel.type, channel.messages.toLocaleString("en"),
      channel.rate === null ? "" : `${channel.rate.toPrecision(3)} Hz`, size(channel.bytes),
    ]);
    at("channels").replaceChildren(table(["Topic", "Type", "Messages", "Rate", "Size"], rows, [2, 3, 4]), more(told.channel_count, rows, "channel"));
    const lost = told.problems.map((problem) => [problem.code, String(problem.offset), size(problem.lost ? problem.size : 0), problem.text]);
    at("tab-problems").textContent = told.problem_count ? `Damage (${told.problem_count})` : "Damage";
    at("tab-problems").dataset.level = told.problem_count ? "bad" : "";
    at("problems").replaceChildren(...(lost.length
      ? [table(["Code", "At byte", "Lost", "What"], lost, [1, 2]), more(told.problem_count, lost, "problem"),
         make("p", {}, "“Recover the log” writes a new file with all messages that are complete.")]
      : [make("p", {}, "The file is complete and undamaged, as far as its index tells.")]));
    at("log").hidden = false;
    pick("summary");
  },
  summary(told) {
    at("summary").replaceChildren(...told.sections.flatMap((section) => [
      make("h3", {}, section.title),
      make("dl", {}, ...section.facts.flatMap((fact) => [
        make("dt", { class: level(fact.level) }, fact.label),
        make("dd", { class: level(fact.level), title: fact.note }, fact.text),
      ])),
    ]));
  },
  health(told) {
    const worst = told.detections[0]?.severity;
    at("tab-health").textContent = told.detections.length ? `Findings (${told.detections.length})` : "Findings";
    at("tab-health").dataset.level = { error: "bad", warn: "warn" }[worst] ?? "";
    const names = { error: "Error", warn: "Warning", note: "Note" };
    at("health").replaceChildren(
      ...told.detections.map((found) => make("article", { class: `finding ${found.severity}` },
        make("p", {}, make("b", {}, names[found.severity]), ` ${found.text}`),
        make("p", { class: "faint" }, [found.detector, `from ${after(found.start_ns, start)} to ${after(found.end_ns, start)}`,
          ...(found.threshold ? [`bound: ${found.threshold}`] : [])].join(" · ")))),
      ...(told.detections.length ? [] : [make("p", {}, "No faults were found.")]),
      list("Looked, and found nothing", told.clean.map((one) => `${one.detector}: ${one.looks_at}`)),
      list("Could not be assessed", told.not_assessed.map((one) => `${one.detector}: ${one.reason}`)),
      list("Failed", told.failed.map((one) => `${one.detector}: ${one.error}`)));
  },
  report(told) {
    const blob = new Blob([told.html], { type: "text/html" });
    offer(`The report is a page that works offline.`, blob, told.name, []);
  },
  recover(told) {
    const lost = told.lost_count
      ? [`${count(told.lost_count, "part")} of the file could not be read, ${size(told.lost_bytes)} in all.`]
      : ["Nothing was lost."];
    offer(`The new file has ${count(told.messages, "message")}. ${lost}`, told.data, told.name,
      [...told.lost.map((loss) => `${loss.text} (${size(loss.size)} at byte ${loss.offset})`), ...told.notes, ...told.skipped]);
  },
};

function level(of) {
  return of === null || of === undefined ? "" : of <= 3 ? "bad" : of === 4 ? "warn" : "";
}

function more(all, rows, word) {
  return all > rows.length ? make("p", { class: "faint" }, `and ${count(all - rows.length, `more ${word}`)}`) : "";
}

function list(title, lines) {
  return lines.length ? make("details", {}, make("summary", {}, `${title} (${lines.length})`), make("ul", {}, ...lines.map((line) => make("li", {}, line)))) : "";
}

function offer(text, blob, name, lines) {
  const link = URL.createObjectURL(blob);
  links.push(link);
  const anchor = make("a", { href: link, download: name, class: "save" }, `Save ${name} (${size(blob.size)})`);
  at("results").append(make("div", { class: "result" }, make("p", {}, text), anchor, list("What was lost or left out", lines)));
  anchor.focus();
}

// ------------------------------------------------------------------------------------------ controls

const tabs = [...document.querySelectorAll("[role=tab]")];

function pick(name, focus = false) {
  for (const tab of tabs) {
    const is = tab.getAttribute("aria-controls") === name;
    tab.setAttribute("aria-selected", is);
    tab.tabIndex = is ? 0 : -1;
    at(tab.getAttribute("aria-controls")).hidden = !is;
    if (is && focus) tab.focus();
  }
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => pick(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    pick(tabs.at(to % tabs.length).getAttribute("aria-controls"), true);
  });
}

for (const verb of ["recover", "report"]) {
  at(verb).addEventListener("click", () => {
    complain("");
    file.since = performance.now();
    asked = [verb];
    next();
  });
}

at("cancel").addEventListener("click", () => {
  forget();
  file = undefined;
  busy(false);
  begin();
  at("drop").focus();
});

at("file").addEventListener("change", () => {
  choose(at("file").files[0]);
  // The same file can be chosen again.
  at("file").value = "";
});
at("drop").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  at("file").click();
});

// The whole page takes files: a browser would show one that misses the box in place of this page.
for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", name === "dragenter" || name === "dragover");
    if (name !== "drop") return;
    const files = [...event.dataTransfer.files];
    const folder = event.dataTransfer.items?.[0]?.webkitGetAsEntry?.()?.isDirectory;
    if (folder) complain("That is a folder: drop one file of it.");
    else if (!files.length) complain("That is no file.");
    else {
      choose(files[0]);
      if (files.length > 1) complain(`This page reads one log at a time: ${files[0].name} of ${files.length} files.`);
    }
  });
}

begin();
