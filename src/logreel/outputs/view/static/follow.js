// Events of the server: a log that grows (the window that reaches its end stays there), and curves that are exact now.

export async function follow(context) {
  const { api, bus, logs, time, view } = context, stop = new AbortController();
  addEventListener("pagehide", () => stop.abort());
  const told = ({ log: id, grown, ready }) => {
    if (ready) bus.send("ready", { log: id, ...ready });
    const log = logs.find((one) => one.id === id);
    if (!log || !grown) return;
    const before = time.whole(), whole = view.isWhole(), atEnd = view.window.to >= before.to - 1;
    Object.assign(log, grown);
    const after = time.whole();
    bus.send("grown", { log: id });
    if (whole) view.all();
    else if (atEnd) view.pan(after.to - before.to);
    document.documentElement.dataset.grown = String(log.messages);
  };
  for (let wait = 500; !stop.signal.aborted; wait = Math.min(2 * wait, 10000)) {
    try {
      await api.events(told, stop);
      wait = 500;
    } catch (error) {
      if (error.name !== "AbortError" && context.session.follow) context.say("The log is no longer followed: the viewer's server does not answer.");
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}
