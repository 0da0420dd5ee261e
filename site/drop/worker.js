// Python in a thread of its own: it reads the file where it is, and answers what the page asks.
//
// From the page: {open: File}, {ask: verb, id}. To the page: {starting: text, share}, {ready, version, lacking},
// {opened | error}, {answer | error, ask}, {progress: [done, all]}. The page ends a verb by ending the worker.

const SCRATCH = "/scratch";

let desk, python, mounted = 0;

// No loads of 404 pages as wheels.
async function bytes(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name} is missing (${response.status})`);
  return response.arrayBuffer();
}

async function start() {
  const contents = JSON.parse(new TextDecoder().decode(await bytes("contents.json")));
  postMessage({ starting: "Loading Python", share: 0.05 });
  const { loadPyodide } = await import("./runtime/pyodide.mjs");
  // All is fetched at once, Python is started meanwhile.
  const coming = Promise.all(contents.wheels.map((name) => bytes(`wheels/${name}`)));
  const source = bytes("logs.py");
  python = await loadPyodide({ indexURL: new URL("runtime/", import.meta.url).href, packages: contents.packages });
  postMessage({ starting: "Loading logreel", share: 0.6 });
  for (const wheel of await coming) python.unpackArchive(wheel, "wheel");
  python.FS.mkdir("/page");
  python.FS.mkdir(SCRATCH);
  python.FS.writeFile("/page/logs.py", new Uint8Array(await source));
  python.runPython("import os, sys; sys.path.insert(0, '/page'); os.environ['LOGREEL_CACHE'] = 'off'");
  const logs = python.pyimport("logs");
  postMessage({ starting: "Starting logreel", share: 0.8 });
  desk = logs.Desk(SCRATCH);
  desk.warm_up();
  const lacking = logs.lacking();
  postMessage({ ready: contents, lacking: lacking.toJs() });
  // From here on nothing is fetched, whatever a log makes Python do.
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "EventSource", "WebTransport", "Worker", "importScripts"]) {
    if (name in self) Object.defineProperty(self, name, { value: undefined, configurable: false, writable: false });
  }
}

function open(file) {
  if (mounted) python.FS.unmount(`/log${mounted}`);
  mounted += 1;
  const folder = `/log${mounted}`;
  python.FS.mkdir(folder);
  // Names are shown, and given to new files; what the file system or a terminal does not like is left out.
  const name = file.name.replaceAll(/[\u0000-\u001f\u007f/\\]/g, "_") || "log";
  // The file is read where it is: no second copy of it.
  python.FS.mount(python.FS.filesystems.WORKERFS, { blobs: [{ name, data: file }] }, folder);
  const { answer, error } = JSON.parse(desk.open(`${folder}/${name}`));
  postMessage(error === undefined ? { opened: answer } : { error });
}

function ask(verb) {
  const tell = (done, all) => postMessage({ progress: [done, all] });
  const { answer, error } = JSON.parse(verb === "report" ? desk.ask(verb, tell) : desk.ask(verb));
  if (error !== undefined) {
    postMessage({ error, ask: verb });
  } else if (verb === "recover") {
    const data = python.FS.readFile(answer.path);
    python.FS.unlink(answer.path);
    const { path, ...told } = answer;
    postMessage({ answer: { ...told, data: new Blob([data], { type: "application/octet-stream" }) }, ask: verb });
  } else {
    postMessage({ answer, ask: verb });
  }
}

// An error that Python has no sentence for: it stops the worker, whose memory nobody can rely on then.
function fail(error) {
  const text = String(error?.message ?? error).trim().split("\n").at(-1);
  postMessage({ failed: text });
}

const started = start();
started.catch(fail);
addEventListener("message", async ({ data }) => {
  try {
    await started;
    if (data.open) open(data.open);
    else ask(data.ask);
  } catch (error) {
    fail(error);
  }
});
