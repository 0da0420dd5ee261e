"""``recover`` writes every message that ``messages()`` delivers, for every kind of damage."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from pathlib import Path

import pytest
from mutations import mutate

import logreel
from support.builders.contents import patrol
from support.samples.bddf.builder import T0
from support.samples.bddf.builder import Builder as Bddf
from support.samples.carla.builder import Builder as Carla
from support.samples.koblenz.builder import Builder as Koblenz

CASES = int(os.environ.get("LOGREEL_FUZZ", "80"))


def koblenz() -> bytes:
    out = Koblenz()
    for i in range(2):
        out.obd(400.0 * i, i, 900, 1.0).add("MyDataM", 400.0 * i + 1, b"own %d" % i)
        out.laser(400.0 * i + 2, "Hokuyo_URG-04LX", "front", [1000 + i] * 3).image(
            400.0 * i + 3, 0, 8, 8, b""
        )
        out.add("LaserRange2DDataM", 400.0 * i + 4, b"older", 100)
    return out.bytes()


def bddf() -> bytes:
    out = Bddf({"note": "made"})
    say = out.messages("say", "text/plain", "line", names=["pid", "n"])
    speed = out.pods({"client": "patrol", "varname": "speed"}, "float32", [2], "m/s")
    for i in range(3):
        out.data(say, T0 + i * 10**9, f"line {i}".encode(), [i * 1000, -i])
        out.values(speed, T0 + i * 10**9, "float32", [i, 2, 3, 4])
    return out.bytes()


def carla() -> bytes:
    out = Carla()
    for i in range(3):
        frame = out.frame(0.5 * i)
        if i == 0:
            frame.add(7, 1, "vehicle.a", values={"role_name": "hero"})
        frame.position(7, (float(i), 0.0, 0.0)).vehicle(7, 0.5)
    return out.bytes()


SMALL = {".vel": koblenz, ".bddf": bddf, ".rec": carla}
FORMATS = {suffix: logreel.open(make()).format for suffix, make in SMALL.items()}


def delivered(log: logreel.Log) -> Counter[tuple[object, ...]]:
    """Return the number of messages by the properties that rewriting keeps."""
    found = Counter[tuple[object, ...]]()
    for m in log.messages(order="file"):
        metadata = m.channel.metadata
        if log.format == "koblenz":
            found[metadata["type_id"], metadata["version"], m.time, bytes(m.data)] += 1
        elif log.format == "bddf":
            # Structs are joined from their members.
            if m.channel.schema.name != "struct":
                found[str(metadata["spec"]), m.time, bytes(m.data)] += 1
        elif m.channel.topic != "frames":
            found[metadata["packet"], bytes(m.data)] += 1
    return found


def check_damaged(data: bytes, suffix: str, out: Path, case: object) -> None:
    try:
        log = logreel.open(data, format=FORMATS[suffix])
    except logreel.LogError:
        return
    due = delivered(log)
    if not due:
        with contextlib.suppress(logreel.LogError):
            logreel.recover(log, out, force=True)
        return
    done = logreel.recover(log, out, force=True)
    again = logreel.open(out)
    left = due - delivered(again)
    assert not left, (case, list(left)[:3], done.notes)
    assert not [p for p in again.problems if p.lost], case


@pytest.mark.parametrize("suffix", SMALL)
def test_recover_keeps_all_messages_of_every_cut(suffix: str, tmp_path: Path) -> None:
    data = SMALL[suffix]()
    for cut in range(4, len(data), 1 if CASES > 80 else 3):
        check_damaged(data[:cut], suffix, tmp_path / f"a{suffix}", cut)


@pytest.mark.parametrize("suffix", SMALL)
def test_recover_keeps_all_messages_of_mutants(suffix: str, tmp_path: Path) -> None:
    data = SMALL[suffix]()
    for seed in range(CASES):
        check_damaged(mutate(data, seed), suffix, tmp_path / f"a{suffix}", seed)


def test_recover_keeps_all_messages_of_patrol(tmp_path: Path) -> None:
    data = patrol()
    for seed in range(CASES // 8):
        check_damaged(mutate(data, seed), ".bddf", tmp_path / "a.bddf", seed)
