"""Comparison of logreel on BDDF, CARLA and Koblenz samples with expected content and plain readers.

Nobody else reads or writes these formats under a licence that would let it be used. The expected files come from an
independent walk of each format, those of CARLA's queries from upstream's own code.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

sys.path[:0] = [one for one in map(str, Path(__file__).parents[:2]) if one not in sys.path]

from rows import Row  # noqa: E402

import logreel  # noqa: E402
from logreel.formats.carla.simulator import api as carla  # noqa: E402
from support.builders.carla_rows import rows as carla_columns  # noqa: E402
from support.oracles import bddf as bddf_oracle  # noqa: E402
from support.oracles import carla as carla_oracle  # noqa: E402
from support.oracles import carla_queries  # noqa: E402
from support.oracles import koblenz as koblenz_oracle  # noqa: E402

HEAD = 21


def compare(shared: Path) -> Iterator[Row]:
    """Yield a row for each sample in ``data`` of *shared* and each way to read or write it."""
    data = shared / "data"
    for path in sorted((data / "bddf").glob("*.bddf")):
        yield from _guarded("bddf", path, _bddf)
    for path in sorted((data / "carla").glob("**/*.log")):
        yield from _guarded("carla", path, _carla)
    for path in sorted((data / "koblenz").glob("*.log")):
        yield from _guarded("koblenz", path, _koblenz)


def _guarded(name: str, path: Path, rows: Callable[[Path], Iterator[Row]]) -> Iterator[Row]:
    """Yield the rows of one file; an exception becomes a row."""
    try:
        yield from rows(path)
    except Exception as error:
        yield Row(name, path.name, "logreel", "", 1, 0, f"{type(error).__name__}: {error}")


def _row(name: str, path: Path, ours: str, peer: str, mine: Iterable[Any], theirs: Iterable[Any]) -> Row:
    """Return the row of two sequences, compared one by one; its note shows the first difference."""
    missing, compared, equal, note = object(), 0, 0, ""
    for one, other in zip_longest(mine, theirs, fillvalue=missing):
        compared += 1
        same = repr(one) == repr(other)
        equal += same
        if not same and not note:
            shown = ("nothing" if x is missing else repr(x)[:60] for x in (one, other))
            note = "{} where the peer has {}".format(*shown)
    return Row(name, path.name, ours, peer, compared, equal, note)


def _written(path: Path, verb: Callable[..., Any]) -> bytes:
    """Return the bytes that an operation of logreel writes from a file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"out{path.suffix}"
        verb(path, out)
        return out.read_bytes()


# ------------------------------------------------------------------------------------------------------ BDDF


def _bddf(path: Path) -> Iterator[Row]:
    want = json.loads((path.parent / f"expected/{path.stem}.json").read_text(encoding="utf-8"))
    data = path.read_bytes()
    log, judge = logreel.open(path), bddf_oracle.walk(data)
    series = [one for one in want["series"] if "struct_type" not in one]
    due = [
        (number, b["timestamp_ns"], b["nbytes"], b["sha1"])
        for number, one in enumerate(want["series"])
        for b in one["blocks"]
        if one in series
    ]
    yield _row("bddf", path, "logreel.open", "expected", sorted(_bddf_blocks(log)), sorted(due))
    numbers = [
        b["additional_indexes"] for one in series for b in one["blocks"] if one["additional_index_names"]
    ]
    yield _row("bddf", path, "additional indexes", "expected", _bddf_numbers(log, want["series"]), numbers)
    plain = [(r.series, r.ns, len(r.payload), hashlib.sha1(r.payload).hexdigest()) for r in judge.rows]
    yield _row("bddf", path, "logreel.open", "plain reader", sorted(_bddf_blocks(log)), sorted(plain))
    made = bddf_oracle.closed(_written(path, logreel.recover))
    got = [(r.series, r.ns, r.payload, r.numbers) for r in made.rows]
    yield _row("bddf", path, "logreel.recover", "plain reader", got, _bddf_due(judge))


def _bddf_due(judge: bddf_oracle.Walk) -> list[Any]:
    return [(r.series, r.ns, r.payload, r.numbers) for r in judge.rows]


def _bddf_blocks(log: logreel.Log) -> Iterator[tuple[int, int, int, str]]:
    for m in log.messages(order="file"):
        if m.channel.schema.name != "struct":
            yield m.channel.number, m.time, len(m.data), hashlib.sha1(m.data).hexdigest()


def _bddf_numbers(log: logreel.Log, series: list[dict[str, Any]]) -> Iterator[list[int]]:
    for ch, one in zip(log.channels.values(), series, strict=False):
        names = one["additional_index_names"]
        for m in log.messages(ch.topic, order="file") if names else ():
            got = m.decode()
            yield [got[name] for name in names]


# ----------------------------------------------------------------------------------------------------- CARLA


def _carla(path: Path) -> Iterator[Row]:
    log, judge = logreel.open(path), carla_oracle.read(path.read_bytes())
    for topic, records in carla_oracle.channels(judge).items():
        name = "physics" if judge.wide and topic == "packet_15" else topic
        if records and name in log:
            got = carla_columns(log, name)
            yield _row("carla", path, f"rows of {name}", "plain reader", got, map(dict, records))
    home = path.parent if (path.parent / "expected").is_dir() else path.parent.parent
    for file in sorted((home / "expected").glob(f"{path.stem}.*")):
        query = file.name[len(path.stem) + 1 :].split(".")[0]
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        what, *given = query.split("_")
        if what == "collisions":
            text = carla.collisions(log, *given[0]).text()
        elif what == "blocked":
            text = carla.blocked(log, *map(float, given)).text()
        else:
            # The expected text of these is that of the code after 0.9.16, which the files themselves do not show.
            release = "0.9.17" if "0.9.16" in path.stem else None
            text = carla.info(log, what == "all", release).text()
        want = raw.decode().splitlines()
        yield _row("carla", path, f"carla {query}", "upstream's queries", text.splitlines(), want)
    for seconds, centimetres in ((1.0, 100.0), (5.0, 10.0)):
        mine = carla.blocked(log, seconds, centimetres).rows()
        got = [(r["time_ns"], r["id"], r["description"], r["duration_s"]) for r in mine]
        due = [(round(at * 1e9), *x) for at, *x in carla_queries.blocked(judge, seconds, centimetres)]
        what = f"blocked {seconds:g} {centimetres:g}"
        yield _row("carla", path, what, "plain queries", sorted(got), sorted(due))
    again = carla_oracle.read(_written(path, logreel.recover))
    yield _row("carla", path, "logreel.recover", "plain reader", _packets(again), _packets(judge))


def _packets(r: carla_oracle.Recording) -> Iterator[tuple[int, int, bytes]]:
    for frame in r.frames:
        for packet in frame.packets:
            yield frame.number, packet.number, packet.payload


# --------------------------------------------------------------------------------------------------- Koblenz


def _koblenz(path: Path) -> Iterator[Row]:
    want = json.loads((path.parent / f"expected/{path.stem}.json").read_text(encoding="utf-8"))
    data = path.read_bytes()
    log, judge = logreel.open(path), koblenz_oracle.walk(data)
    got = [
        (
            m.offset - HEAD,
            m.channel.metadata["type_id"],
            m.channel.metadata["version"],
            m.time,
            len(m.data),
        )
        for m in log.messages(order="file")
    ]
    due = [
        (row["at"], row["type"], row["version"], round(row["timestamp_ms"] * 1e6), row["payload_bytes"])
        for row in want["messages"]
        if row["mark"] == judge.mark
    ]
    yield _row("koblenz", path, "logreel.open", "expected", got, due)
    plain = [(r.at, f"0x{r.type:08X}", r.version, round(r.ms * 1e6), r.end - r.at - HEAD) for r in judge.rows]
    yield _row("koblenz", path, "logreel.open", "plain reader", got, plain)
    lost = sorted((p.offset, p.offset + p.size) for p in log.problems if p.lost)
    yield _row("koblenz", path, "ranges lost", "plain reader", lost, sorted(judge.lost))
    fields = [(m, row["data"]) for m, row in _described(log, want)]
    yield _row("koblenz", path, "decoded numbers", "expected", (_known(m, row) for m, row in fields),
               (dict(sorted(row.items())) for _, row in fields))  # fmt: skip
    for verb in (logreel.recover, logreel.sort):
        again = koblenz_oracle.walk(made := _written(path, verb))
        mine = [(r.type, r.version, r.ms, made[r.at + HEAD : r.end]) for r in again.rows]
        theirs = [(r.type, r.version, r.ms, data[r.at + HEAD : r.end]) for r in judge.rows]
        if verb is logreel.sort:
            theirs.sort(key=lambda row: row[2])
        yield _row("koblenz", path, f"logreel.{verb.__name__}", "plain reader", mine, theirs)


def _described(log: logreel.Log, want: dict[str, Any]) -> Iterator[tuple[logreel.Message, dict[str, Any]]]:
    """Yield messages whose fields the expected file lists in the same words, with these fields."""
    rows = {row["at"]: row for row in want["messages"]}
    for m in log.messages(order="file"):
        row = rows.get(m.offset - HEAD, {})
        if m.channel.schema.name in ("OBDDataM", "GPSDataM", "RobotPoseM") and "data" in row:
            yield m, row


def _known(m: logreel.Message, row: dict[str, Any]) -> dict[str, Any]:
    got = m.decode()
    renamed = {"speed_kmh": "speed"}
    return {name: got[renamed.get(name, name)] for name in sorted(row)}
