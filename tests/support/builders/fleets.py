"""Folders with many small logs of all formats, and with files that are none."""

from __future__ import annotations

import functools
import struct
from pathlib import Path
from typing import Any

from logreel.fleet import Dataset
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.carla.builder import eventful
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.mcap.walk import walk as mcap_walk
from support.samples.rosbag.builder import drive, tiny
from support.samples.ulog.builder import Builder, flight

#: Of each ten logs, two to three are no sound ones.
KINDS = 12


def firmware_log(number: int, later: bool) -> bytes:
    """Return a ULog whose topic ``odd`` has another definition in a later version: wider, and with one field more."""
    kind, form = ("double", "<Qdif") if later else ("float", "<Qfi")
    more = "float added;" if later else ""
    out = Builder(start_us=1_000_000).flags()
    out.info("sys_name", "PX4").info("sys_uuid", f"000{number % 3}").info("ver_sw", f"{1 + later}" * 40)
    out.info("log_number", str(number))
    out.format(f"odd:uint64_t timestamp;{kind} value;int32_t mode;{more}")
    out.subscribe("odd", 0)
    for step in range(20):
        values = (1_000_000 + step, step / 2, step, *((7.0,) if later else ()))
        out.data(0, struct.pack(form, *values))
    return out.bytes()


@functools.cache
def _bases() -> tuple[bytes, ...]:
    return (
        bytes(eventful().bytes()),
        koblenz_drive(0.2, 20),
        mcap_walk(1.0),
        drive(0.5),
        tiny("1.2"),
    )


def fleet_log(number: int) -> tuple[str, bytes]:
    """Return suffix and content of one file of a fleet; every format is among each twelve, and what is no log."""
    carla, koblenz, mcap, bag, old_bag = _bases()
    match number % KINDS:
        case 0:
            return ".ulg", flight(1.0, number + 1)
        case 1:
            return ".bag", bag
        case 2:
            return ".mcap", mcap
        case 3:
            return ".bddf", bddf_walk(1.0 + number / 100)
        case 4:
            return ".rec", carla
        case 5:
            return ".vel", koblenz
        case 6:
            return ".bag", old_bag
        case 7:
            return ".ulg", firmware_log(number, later=number % 24 == 7)
        case 8:
            return ".ulg", b""
        case 9:
            # Cut inside a record.
            data = flight(1.0, number + 1)
            return ".ulg", data[: len(data) * 2 // 3 - 5]
        case 10:
            return ".jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(64 + number)
        case _:
            return ".mcap", mcap[: len(mcap) // 2]


def make_fleet(folder: Path, count: int) -> Path:
    """Write *count* files to *folder*, in sub-folders; return *folder*. The last one cannot be read."""
    for number in range(count):
        suffix, data = fleet_log(number)
        place = folder / f"robot{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"log_{number}{suffix}").write_bytes(data)
    # A link to nowhere cannot be read by anyone, root included.
    (folder / "robot0" / "gone.ulg").symlink_to("nowhere.ulg")
    return folder


def rows_at_places(dataset: Path, topic: str, columns: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a topic for each place of their logs, with the path in ``log``, as plans have them."""
    opened = Dataset(dataset)
    return [
        {name: row[name] for name in columns} | ({"log": path} if "log" in columns else {})
        for row in opened.table(topic).to_pylist()
        for path in opened.manifests[row["log"]].row.paths
    ]
