"""Four parts opened as one log, compared with opening them one by one, and with reading and slicing their merge."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
import bigbag
import biglog
import logreel
from harness import Job, compare

IMPORTS = """
import logreel, pathlib, tempfile, pyarrow, concurrent.futures
import logreel.ops.rewrite.slice, logreel.registry.open_parts, logreel.log.read_tables
folder = tempfile.TemporaryDirectory(prefix="logreel-bench-")
parts = sorted(str(p) for p in pathlib.Path(path).with_suffix("").iterdir())
name = folder.name + "/out" + pathlib.Path(path).suffix
from support.formats import sample_log
logreel.open(sample_log("ulog"))
"""
BOTH = (
    IMPORTS
    + """
one = logreel.open(path); middle = (one.start + one.end) // 2
many = logreel.open(parts)
topic = max(one.match(None), key=len).topic
field = next(f for f in one[topic].fields if "stamp" not in f)
"""
)
OPENING = Job("the parts one by one", "logs = [logreel.open(part) for part in parts]", IMPORTS)
OPENED = [
    Job(
        "the parts one by one, with start and end",
        "[(p.start, p.end) for p in map(logreel.open, parts)]",
        IMPORTS,
    ),
    Job("the parts as one log", "log = logreel.open(parts)", IMPORTS, bound="1.2"),
    Job("the parts as one log, with start and end", "log = logreel.open(parts); log.start, log.end", IMPORTS),
    Job("their merge", "log = logreel.open(path)", IMPORTS),
]
#: Each reads the merge first, then the parts.
READ = [
    ("all tables", "{log}.tables()"),
    ("one field of the channel with most messages", "{log}[topic][field]"),
    ("table of that channel", "{log}[topic].to_arrow()"),
    ("messages by time", "for m in {log}.messages(): pass"),
    ("slice: second half", "logreel.slice({log}, name, start=middle)"),
]


def main() -> None:
    """Print the tables; argument: a scale, 1 for logs of about 300 MB."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    os.environ["LOGREEL_CACHE"] = "off"
    with tempfile.TemporaryDirectory(prefix="logreel-bench-") as folder:
        for title, source in (
            ("ULog", biglog.make(int(300 * scale))),
            ("bag", bigbag.make("mixed", "none", 1.5 * scale)),
            ("bag, lz4", bigbag.make("mixed", "lz4", 1.5 * scale)),
        ):
            path = prepare(Path(source), Path(folder))
            compare(f"open four parts: {title}", str(path), OPENING, OPENED, rounds=3, unit="parts")
            for what, job in READ:
                compare(
                    f"{what}: {title}",
                    str(path),
                    Job("of the merge", job.format(log="one"), BOTH),
                    [Job("of the parts as one log", job.format(log="many"), BOTH)],
                    rounds=3,
                    unit="merge",
                )


def prepare(source: Path, folder: Path) -> Path:
    """Return the merge of four parts of a log; the parts are in a folder of the same name without suffix."""
    place, path = folder / source.stem, folder / source.name
    with logreel.open(source) as log:
        logreel.split(log, place, every=(log.duration or 0) // 4 + 1)
    logreel.merge(sorted(place.iterdir()), path)
    return path


if __name__ == "__main__":
    main()
