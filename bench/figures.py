"""Fill the figures of README.md and docs/, and draw the chart of speed, from bench/results.json.

    python bench/figures.py [--check]

A place in a page is ``<!-- bench:KEY -->…<!-- /bench -->``. KEY is the name of a function here, or

    GROUP: JOB                      the median time of a job
    GROUP: JOB / JOB                the ratio of the medians of two jobs, with the measure of the group
    GROUP: JOB | VALUE              a value of a job, such as memory

``--check`` changes nothing, and ends with 1 if a page or the chart is not what the file says.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results.json"
#: Of ``make fresh``.
FRESH = ROOT / "bench" / "fresh.json"
CHART = ROOT / "docs" / "images" / "speed.svg"
PLACE = re.compile(r"(<!-- bench:(.+?) -->)(.*?)(<!-- /bench -->)", re.DOTALL)
#: By format: the other library, and its colour.
PEERS = {"ulog": "pyulog", "rosbag": "rosbags", "mcap": "mcap"}
STEPS = ("info", "one column", "every field as NumPy", "every channel as Arrow", "Parquet")
TITLES = {"ulog": "ULog", "rosbag": "ROS 1 bag", "mcap": "MCAP"}


class Results:
    """The figures of a file of results."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.about: dict[str, Any] = content["about"]
        self.groups: dict[str, Any] = content["groups"]

    @classmethod
    def load(cls) -> Results:
        """Return the committed ones."""
        return cls(json.loads(RESULTS.read_text()))

    def spread(self, group: str, job: str, measure: str = "") -> tuple[float, float, float]:
        """Return least, median and greatest of a measure of a job, by default that of the group."""
        found = self.groups[group]
        low, middle, high = found["jobs"][job][measure or found["measure"]]
        return low, middle, high

    def median(self, group: str, job: str, measure: str = "") -> float:
        """Return the median of a measure of a job."""
        return self.spread(group, job, measure)[1]

    def over(self, group: str, job: str, other: str) -> float:
        """Return the ratio of the medians of two jobs."""
        return self.median(group, job) / self.median(group, other)

    def size(self, group: str) -> str:
        """Return the size of a group's log."""
        return f"{self.groups[group]['bytes'] / 1e6:.0f} MB"

    def where(self, group: str) -> str:
        """Return on which machine, when and from what a group was measured."""
        about = self.groups[group].get("about", self.about)
        note = f". {about['note'].capitalize()}" if about.get("note") else ""
        return f"{about['machine']}; commit {about['commit']}, {about['date']}{note}"

    def sizes(self, log_format: str) -> list[float]:
        """Return the megabytes of the logs of the ladder of a format."""
        start = f"ladder-{log_format}-"
        return sorted(float(name[len(start) :]) for name in self.groups if name.startswith(start))

    def value(self, key: str) -> str:
        """Return the text of a key that names a group."""
        group, _, rest = key.partition(": ")
        if " | " in rest:
            job, measure = rest.split(" | ")
            return number(self.median(group, job, measure))
        if " / " in rest:
            job, other = rest.split(" / ")
            return number(self.over(group, job, other))
        return seconds(self.median(group, rest))


def number(value: float) -> str:
    """Return a number with two digits, or all digits before the point."""
    if value >= 9.95 or value == int(value):
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.{max(0, 1 - math.floor(math.log10(abs(value))))}f}"


def seconds(value: float) -> str:
    """Return a time in ms or s."""
    return f"{number(value)} s" if value >= 0.9995 else f"{number(value * 1e3)} ms"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# The texts of README.md and docs/, by the keys of their places.


def _ladder(r: Results, log_format: str) -> str:
    """Return a table of the CPU time of logreel and of the other library at each size, and their ratio."""
    peer, sizes = PEERS[log_format], r.sizes(log_format)

    def cell(step: str, size: float) -> str:
        jobs = r.groups[f"ladder-{log_format}-{size:g}"]["jobs"]
        if not {f"logreel: {step}", f"{peer}: {step}"} <= jobs.keys():
            return ""
        ours, theirs = (jobs[f"{name}: {step}"]["cpu"][1] for name in ("logreel", peer))
        times = f"{number(theirs / ours)} ×"
        return f"{seconds(ours)}, {seconds(theirs)}: {times if theirs >= ours else f'**{times}**'}"

    rows = [[step, *(cell(step, size) for size in sizes)] for step in STEPS]
    return _table([f"{TITLES[log_format]}: logreel, {peer}", *(f"{size:g} MB" for size in sizes)], rows)


def _ladder_caption(r: Results) -> str:
    least = f"ladder-ulog-{r.sizes('ulog')[0]:g}"
    numpy, pyarrow = (seconds(r.median(least, f"import {name}")) for name in ("numpy", "pyarrow"))
    return (
        f"CPU time of whole processes, from the start of Python to the result; bold where the other library is\n"
        f"faster. `import numpy` alone takes {numpy}, `import pyarrow` {pyarrow}. {r.where(least)}."
    )


def speed_ladder(r: Results) -> str:
    """Whole processes on ULogs."""
    return f"{_ladder(r, 'ulog')}\n\n{_ladder_caption(r)}"


def speed_ladders(r: Results) -> str:
    """Whole processes on logs of all formats."""
    return "\n\n".join((*(_ladder(r, log_format) for log_format in PEERS), _ladder_caption(r)))


def speed_all(r: Results) -> str:
    """Every job with a yardstick: time, and ratio to the yardstick of its group."""
    rows = []
    for name, group in r.groups.items():
        if name.startswith("ladder-"):
            continue
        for job, row in group["jobs"].items():
            if "ratio" in row and job != group["yardstick"]:
                low, middle, high = map(number, row["ratio"])
                time = f"{seconds(row[group['measure']][1])}{' of CPU' * (group['measure'] == 'cpu')}"
                size = f", {number(group['bytes'] / 1e6)} MB" if group["bytes"] else ""
                rows.append(
                    [f"{group['title']}{size}", job, time, f"{middle} ({low} to {high})", group["yardstick"]]
                )
    return f"{_table(['log', 'job', 'median', 'ratio', 'to'], rows)}\n\n{r.where(next(reversed(r.groups)))}."


def speed_bounds(r: Results) -> str:
    """What the bench demands, and what does not hold."""
    judged = [(name, bound) for name, group in r.groups.items() for bound in group["bounds"]]
    rows = [[name, bound["says"], "yes" if bound["holds"] else "**no**"] for name, bound in judged]
    return _table(["group", "bound", "holds"], rows) if rows else "(not measured)"


def speed_ulog(r: Results) -> str:
    """ULog in a running process."""
    jobs = {
        "open": "open: index of every message",
        "open, one topic to Arrow": "open, and one topic to Arrow",
        "open, all topics to Arrow": "open, and all topics to Arrow",
        "open again, with the index": "open again, with the index",
    }
    rows = []
    for job, title in jobs.items():
        low, middle, high = r.spread("ulog", job, "ratio")
        rows.append(
            [
                title,
                f"{middle:.2f} ({low:.2f} to {high:.2f})",
                number(r.over("ulog", job, "warm memcpy")),
                f"{number(r.over('ulog', 'pyulog: ULog(path)', job))} × faster",
            ]
        )
    copy, memcpy = (seconds(r.median("ulog", job)) for job in ("fresh copy", "warm memcpy"))
    head = [
        f"on a ULog of {r.size('ulog')}",
        "ratio to a fresh copy",
        "to a warm memcpy",
        "against pyulog's full load",
    ]
    rounds = r.groups["ulog"]["rounds"]
    caption = (
        f"Medians and ranges of {rounds} round{'s' * (rounds > 1)}, each job in a separate process after its "
        f"imports. The fresh copy is "
        f"`np.array(np.memmap(path))`, including page faults: {copy}; the warm one took {memcpy}. {r.where('ulog')}."
    )
    return f"{_table(head, rows)}\n\n{caption}"


def speed_bag(r: Results) -> str:
    """A bag beside rosbags in a running process."""
    opened = number(r.over("rosbag-mixed", "rosbags: open", "open"))
    decoded = number(
        r.over("rosbag-mixed", "rosbags: deserialize every message", "open, all topics to Arrow")
    )
    copies = number(r.over("rosbag-mixed", "open, all topics to Arrow", "fresh copy"))
    loop = number(
        r.over("decoded", "rosbags: deserialize every message", "for m in log.messages(): m.decode()")
    )
    return (
        f"Against `rosbags` on a bag of {r.size('rosbag-mixed')} with mixed messages: open {opened} × faster, all\n"
        f"messages to Arrow {decoded} × faster than deserializing them, in {copies} times a fresh copy. Message\n"
        f"by message, decoded, {loop} ×."
    )


def speed_rewrite(r: Results) -> str:
    """Rewriting beside cp and fsync."""
    jobs = {
        "slice: everything": "slice",
        "recover": "recover",
        "sort": "sort",
        "merge of two halves": "merge of two halves",
    }
    formats = {
        "ulog": "ULog",
        "rosbag": "bag",
        "bddf": "BDDF",
        "carla": "CARLA recording",
        "koblenz": "Koblenz log",
    }
    rows = [
        [f"{title}, {r.size(f'rewrite-{name}')}"]
        + [f"{r.median(f'rewrite-{name}', job, 'ratio'):.1f}" for job in jobs]
        for name, title in formats.items()
    ]
    copy = seconds(r.median("rewrite-ulog", "cp and fsync"))
    caption = f"`cp` and `fsync` of the ULog took {copy}. {r.where('rewrite-ulog')}."
    return f"{_table(['', *jobs.values()], rows)}\n\n{caption}"


def speed_mcap(r: Results) -> str:
    """Conversions to MCAP beside zstd alone and other libraries."""
    groups = {
        "mcap-of-ulog": "pyulog and mcap, as JSON",
        "mcap-of-random": "rosbags and mcap",
        "mcap-of-bag": "rosbags and mcap",
    }
    alone = {
        "--raw, zstd": "zstd alone, of the bytes of --raw",
        "default, zstd": "zstd alone, of the bytes of the default",
    }
    shares = [r.over(group, base, ours) for group in groups for ours, base in alone.items()]
    gains = {
        group: number(min(r.over(group, peer, ours) for ours in alone)) for group, peer in groups.items()
    }
    return (
        f"Conversions to MCAP with zstd reach {min(shares):.1f} to {max(shares):.1f} times the throughput of a\n"
        f"single zstd thread that only compresses the bytes of that MCAP. They are at least {gains['mcap-of-ulog']} ×\n"
        f"faster than pyulog with the `mcap` library for a ULog, and {gains['mcap-of-random']} × (random numbers,\n"
        f"dominated by zstd) to {gains['mcap-of-bag']} × (mixed messages) faster than `rosbags` with that library."
    )


def speed_carla(r: Results) -> str:
    """CARLA beside a copy and a plain reader."""
    rows = [
        [job, f"{r.median('carla', job, 'ratio'):.2f}"]
        for job in ("open", "open, all packets to columns", "open, one field", "open, list collisions")
    ]
    plain = number(10 * r.over("carla", "plain Python reader, a tenth", "open, all packets to columns"))
    return (
        f"{_table(['on a recording of ' + r.size('carla'), 'ratio to a fresh copy'], rows)}\n\n"
        f"A plain reader that uses `struct` takes {plain} times as long for all columns. {r.where('carla')}."
    )


def fresh_start(_: Results) -> str:
    """What a stranger types in an empty folder, as ``make fresh`` has timed it."""
    if not FRESH.exists():
        return "(not measured)"
    content = json.loads(FRESH.read_text())
    pages = content["parts"]
    rows = []
    for step, took in content["steps"].items():
        if parts := pages.get(step):
            slowest = max(parts, key=parts.get)
            rows.append([f"the examples of {step}", seconds(took), f"{slowest}: {seconds(parts[slowest])}"])
        else:
            rows.append([f"`{step}`" if step.startswith(("make", "pip")) else step, seconds(took), ""])
    return _table(["step", "time", "longest part"], rows) + f"\n\nOne run; {content['about']}."


def _of_values(r: Results, group: str, job: str, names: dict[str, str]) -> list[list[str]]:
    """Return rows of a title and values of a job; a title names several values with commas between."""
    rows = []
    for title, keys in names.items():
        cells = []
        for key in keys.split("; "):
            unit = key.rpartition(", ")[2] if ", " in key else "MB" if key.endswith("MB") else ""
            cells.append(f"{number(r.median(group, job, key))} {unit}".strip())
        rows.append([title, ", ".join(cells)])
    return rows


def view_alone(r: Results) -> str:
    """The viewer on large logs."""
    group = "view-pan-100" if "view-pan-100" in r.groups else "view-pan"
    gigabytes = number(r.median(group, "pan and zoom", "size, GB"))
    millions = r.groups[group]["title"].partition(", ")[2]
    last = list(r.groups["view"]["jobs"]["first picture"])
    series = next(name for name in last if name.endswith("series, s"))
    rows = _of_values(
        r,
        "view",
        "first picture",
        {
            f"ULog of {r.size('view')}, index in the cache: from the command to {series[:-3]}, and to the overview": (
                f"{series}; overview, s"
            )
        },
    )
    rows += _of_values(
        r,
        group,
        "pan and zoom",
        {
            f"ULog of {gigabytes} GB with {millions}: open without an index, and with one": (
                "opened without an index, s; opened again, s"
            ),
            "in it, windows of 1200 pixels between all and a millionth: median, 95th percentile": (
                "window, median, ms; window, 95 %, ms"
            ),
            "pyramid of a field, beside reading the field": "pyramid / reading",
            "memory of the viewer with all plots, besides mapped files": "memory with all plots, MB",
        },
    )
    return f"{_table(['', ''], rows)}\n\n{r.where('view')}."


def view_peers(r: Results) -> str:
    """The viewer beside Rerun's."""
    value = {
        key: number(r.median("view-peers", "beside Rerun", key))
        for key in r.groups["view-peers"]["jobs"]["beside Rerun"]
    }
    rows = [
        [
            "`logreel view` with chromium",
            f"{value['logreel view: first plots, s']} s",
            f"{value['logreel view, MB']} MB, chromium {value['its browser, MB']} MB",
            "nothing",
        ],
        [
            "Rerun without a window",
            f"{value['rerun: first picture, s']} s",
            f"{value['rerun, MB']} MB",
            f"{value['writing the .rrd, s']} s to write the `.rrd` ({value['.rrd, MB']} MB)",
        ],
    ]
    head = [f"ULog of {r.size('view-peers')}", "first plots", "memory", "before"]
    return f"{_table(head, rows)}\n\n{r.where('view-peers')}."


def remote_tasks(r: Results) -> str:
    """Requests and bytes of a bag on a server."""
    tasks = ("info", "5 s of one topic, of the open log", "slice of 5 s", "SQL of 5 s")
    values = {
        key: number(r.median("remote", "a bag on a server", key))
        for key in r.groups["remote"]["jobs"]["a bag on a server"]
    }
    rows = [[task, values[f"{task}: requests"], f"{values[f'{task}: MB']} MB"] for task in tasks]
    return _table([f"bag of {number(r.groups['remote']['bytes'] / 1e9)} GB", "requests", "received"], rows)


def follow_latency(r: Results) -> str:
    """The latency of cat -f."""
    medians = [r.median("follow", name, "latency, median, ms") for name in ("ulog", "mcap", "rosbag", "bddf")]
    highest = max(
        r.median("follow", name, "latency, 99 %, ms") for name in ("ulog", "mcap", "rosbag", "bddf")
    )
    low, high = number(min(medians)), number(max(medians))
    return f"Measured: a median of {low} to {high} ms, 99 % below {number(highest)} ms. {r.where('follow')}."


def _fleet_counts(r: Results) -> list[tuple[int, str]]:
    """Return the numbers of small logs that were ingested, and the names of their jobs."""
    numbers = sorted(int(name[6:]) for name in r.groups if name[:6] == "fleet-" and name[6:].isdigit())
    return [(number, f"{number} logs, two workers") for number in numbers]


def scale_cost(r: Results) -> str:
    """What a fleet costs: rows that were measured, in CPU time."""
    megabytes = r.median("fleet-workers", "1 worker", "MB") / r.median(
        "fleet-workers", "1 worker", "CPU of workers, s"
    )
    count, job = _fleet_counts(r)[-1]
    group = f"fleet-{count}"
    own = r.median(group, job, "CPU of the coordinating process, s") / count
    again = r.median(group, job, "again, nothing new, s") / count
    sizes = sorted(int(name.rpartition("-")[2]) for name in r.groups if name.startswith("fleet-memory-"))
    memory = [
        f"{number(r.median(f'fleet-memory-{size}', f'log of {size} MB', 'unique, MB'))} MB for a log of {size} MB"
        for size in sizes
    ]
    rows = [
        ["messages to Parquet", f"1 s of CPU for {number(megabytes)} MB of log"],
        [
            "each small log",
            f"{number(r.median(group, job, 'CPU for each log, ms'))} ms of CPU, start of workers included",
        ],
        ["each log, in the coordinating process", f"{seconds(own)} of CPU"],
        ["each log that has not changed", f"{seconds(again)}: a stat and two reads of 64 KiB"],
        ["memory of a worker", f"{', '.join(memory)}; [see below](#memory-of-a-worker)"],
    ]
    return f"{_table(['what', 'cost'], rows)}\n\n{r.where('fleet-workers')}."


def scale_runs(r: Results) -> str:
    """Times of whole runs of a fleet."""
    one, two = (r.median("fleet-workers", job, "ingest, s") for job in ("1 worker", "2 workers"))
    megabytes = r.median("fleet-workers", "1 worker", "MB")
    rows = [
        [
            f"12 logs of {number(megabytes / 12)} MB, one worker",
            f"{seconds(one)} ({number(megabytes / one)} MB/s)",
        ],
        [
            "the same, two workers",
            f"{seconds(two)} ({number(megabytes / two)} MB/s): {one / two:.2f} times as fast",
        ],
    ]
    for count, job in _fleet_counts(r):
        first, again = (
            r.median(f"fleet-{count}", job, key) for key in ("ingest, s", "again, nothing new, s")
        )
        text = f"{seconds(first)}; again, where nothing is new, {seconds(again)}"
        rows.append([f"{count} logs of 0.4 MB, two workers", text])
    if "ray" in r.groups.get("fleet-ray", {}).get("jobs", {}):
        theirs, ours = (
            r.median("fleet-ray", "ray", key) for key in ("read_mcap, decoded by hand, s", "logreel, s")
        )
        what = "Ray Data, 3 fields of one topic of 16 MCAP files with 100 000 messages each: "
        rows.append([f"{what}`ray.data.read_mcap`, then decoding by hand", seconds(theirs)])
        rows.append(
            [
                "the same through the datasource of logreel",
                f"{seconds(ours)}: {theirs / ours:.2f} times as fast",
            ]
        )
    return f"{_table(['what', 'time'], rows)}\n\n{r.where('fleet-workers')}."


def limits_scaling(r: Results) -> str:
    """Time and memory against the number of things."""
    tasks = ("open", "info", "check", "summary", "recover", "table")
    rows = []
    groups = [r.groups[name]["jobs"] for name in ("scaling", "scaling-100000") if name in r.groups]
    for case in groups[0]:
        merged = {key: value[1] for jobs in groups for key, value in jobs.get(case, {}).items()}
        for count in sorted({int(key.split()[0]) for key in merged if key[0].isdigit()}):
            cells = [
                f"{merged[f'{count} {task} s']:.2f} s, {merged[f'{count} {task} MiB']:.0f} MiB"
                if f"{count} {task} s" in merged
                else "—"
                for task in tasks
            ]
            rows.append([case.replace("_", " "), f"{count:,}".replace(",", " "), *cells])
    return f"{_table(['log', 'number', *tasks], rows)}\n\n{r.where('scaling')}."


TEXTS: dict[str, Callable[[Results], str]] = {
    f.__name__: f
    for f in (
        speed_ladder,
        speed_ladders,
        speed_all,
        speed_bounds,
        speed_ulog,
        speed_bag,
        speed_rewrite,
        speed_mcap,
        speed_carla,
        fresh_start,
        view_alone,
        view_peers,
        remote_tasks,
        follow_latency,
        scale_cost,
        scale_runs,
        limits_scaling,
    )
}


def filled(page: str, r: Results) -> str:
    """Return a page with the texts of its places."""

    def text(match: re.Match[str]) -> str:
        begin, key, _, end = match.groups()
        try:
            return f"{begin}\n{TEXTS[key](r)}\n{end}" if key in TEXTS else f"{begin}{r.value(key)}{end}"
        except LookupError:
            # A run of some groups only, or without a library.
            return f"{begin}(not measured){end}"

    return PLACE.sub(text, page)


# The chart: a panel for each format and step, CPU seconds of both over the size of the log, both logarithmic.

WIDTH, PANEL_W, PANEL_H, LEFT, TOP = 1080, 186, 150, 62, 62
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600 } .small { font-size: 10.5px; fill: #57606a }
.frame { fill: none; stroke: #8c959f } .grid { stroke: #8c959f; stroke-opacity: .25 }
.us { stroke: #0969da; fill: #0969da } .them { stroke: #bc4c00; fill: #bc4c00 }
path { fill: none !important; stroke-width: 2 } .them path { stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 }
  .us { stroke: #58a6ff; fill: #58a6ff } .them { stroke: #f0883e; fill: #f0883e }
}
"""


def chart(r: Results) -> str:
    """Return the ladder as an SVG: rows are formats, columns are steps."""
    formats = [name for name in PEERS if r.sizes(name)]
    sizes = sorted({size for name in formats for size in r.sizes(name)})
    lines = {
        (log_format, step, name): [
            (size, r.median(f"ladder-{log_format}-{size:g}", f"{name}: {step}", "cpu"))
            for size in r.sizes(log_format)
            if f"{name}: {step}" in r.groups[f"ladder-{log_format}-{size:g}"]["jobs"]
        ]
        for log_format in formats
        for step in STEPS
        for name in ("logreel", PEERS[log_format])
    }
    times = [time for line in lines.values() for _, time in line]
    low, high = math.floor(math.log10(min(times)) * 2) / 2, math.ceil(math.log10(max(times)) * 2) / 2
    decades = [10.0**k for k in range(math.ceil(low), math.floor(high) + 1)]
    step_x, step_y = PANEL_W + 12, PANEL_H + 40
    height = TOP + step_y * len(formats) + 30

    def x(size: float) -> float:
        span = math.log10(max(sizes) / min(sizes)) or 1.0
        return 8 + (PANEL_W - 16) * math.log10(size / min(sizes)) / span

    def y(time: float) -> float:
        return PANEL_H - PANEL_H * (math.log10(time) - low) / (high - low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="CPU time of whole processes over the size of the log, logreel and other libraries">',
        f"<style>{STYLE}</style>",
        f'<text x="{LEFT}" y="18" class="head">CPU time of a whole process by size of the log, logarithmic</text>',
        _legend(
            LEFT,
            36,
            [("us", "logreel"), ("them", f"other library: {', '.join(PEERS[name] for name in formats)}")],
        ),
    ]
    for row, log_format in enumerate(formats):
        for column, step in enumerate(STEPS):
            left, top = LEFT + column * step_x, TOP + row * step_y
            out.append(
                f'<g transform="translate({left},{top})"><rect class="frame" width="{PANEL_W}" height="{PANEL_H}"/>'
            )
            out.append(f'<text x="6" y="-5">{_panel_title(log_format, step, column)}</text>')
            for time in decades:
                out.append(
                    f'<line class="grid" x1="0" x2="{PANEL_W}" y1="{y(time):.1f}" y2="{y(time):.1f}"/>'
                )
                if column == 0:
                    out.append(
                        f'<text x="-6" y="{y(time) + 4:.1f}" class="small" text-anchor="end">{time:g} s</text>'
                    )
            for size in sizes:
                out.append(
                    f'<text x="{x(size):.1f}" y="{PANEL_H + 14}" class="small" text-anchor="middle">{size:g}</text>'
                )
            out.append(
                f'<text x="{PANEL_W}" y="{PANEL_H + 26}" class="small" text-anchor="end">MB</text>'
                * (column == len(STEPS) - 1)
            )
            for name, css in (("logreel", "us"), (PEERS[log_format], "them")):
                points = [(x(size), y(time)) for size, time in lines[log_format, step, name]]
                path = "M" + " L".join(f"{a:.1f},{b:.1f}" for a, b in points)
                dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in points)
                out.append(f'<g class="{css}"><path d="{path}"/>{dots}</g>')
            out.append("</g>")
    where = _escaped(r.where(f"ladder-{formats[0]}-{sizes[0]:g}"))
    out.append(f'<text x="{LEFT}" y="{height - 8}" class="small">{where}</text></svg>')
    return "\n".join(out) + "\n"


def _panel_title(log_format: str, step: str, column: int) -> str:
    return f"{TITLES[log_format]} beside {PEERS[log_format]}: {step}" if column == 0 else step


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _legend(left: int, y: int, rows: list[tuple[str, str]]) -> str:
    out = []
    for css, text in rows:
        out.append(
            f'<g class="{css}"><path d="M{left},{y - 4} h26"/><circle cx="{left + 13}" cy="{y - 4}" r="2.5"/></g>'
        )
        out.append(f'<text x="{left + 32}" y="{y}">{_escaped(text)}</text>')
        left += 60 + 7 * len(text)
    return "".join(out)


def pages() -> list[Path]:
    """Return the pages that have places."""
    return [
        page
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        if "<!-- bench:" in page.read_text()
    ]


def stale(results: Results | None = None) -> dict[Path, str]:
    """Return the files that differ from what the results say, with the text that they should have."""
    r = results or Results.load()
    wanted = {page: filled(page.read_text(), r) for page in pages()} | {CHART: chart(r)}
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


def main() -> int:
    """Write the files, or check them."""
    different = stale()
    for path, text in different.items():
        print(path.relative_to(ROOT))
        if "--check" not in sys.argv:
            path.write_text(text)
    return int("--check" in sys.argv and bool(different))


if __name__ == "__main__":
    sys.exit(main())
