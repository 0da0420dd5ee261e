"""Small sound logs of every format and version, each with the walker that finds its fields and records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from damage.structure import Structure, bddf, carla, koblenz, mcap, rosbag, ulog
from support.samples.bddf.builder import T0
from support.samples.bddf.builder import Builder as BddfBuilder
from support.samples.carla.builder import eventful
from support.samples.carla.records import RELEASES
from support.samples.koblenz.builder import Builder as KoblenzBuilder
from support.samples.mcap.builder import Builder as McapBuilder
from support.samples.mcap.builder import tiny as mcap_tiny
from support.samples.rosbag import old
from support.samples.rosbag.builder import Builder as BagBuilder
from support.samples.rosbag.builder import few, version_2_0
from support.samples.ulog import builder as ulog_builder
from support.samples.ulog.builder import Builder as UlogBuilder


@dataclass(frozen=True)
class Small:
    """A sample: its format, a function that makes its bytes, and the walker of the format."""

    format: str
    make: Callable[[], bytes]
    walk: Callable[[bytes], Structure]


def small_bddf() -> bytes:
    out = BddfBuilder({"note": "made"})
    say = out.messages("say", "text/plain", "line", names=["pid"])
    speed = out.pods({"client": "patrol", "varname": "speed"}, "float32", [2], "m/s")
    for i in range(6):
        out.data(say, T0 + i * 10**9, b"line %d" % i, [i * 1000])
        out.values(speed, T0 + i * 10**9, "float32", [i, 2, 3, 4])
    return out.bytes()


def small_koblenz() -> bytes:
    out = KoblenzBuilder()
    for i in range(4):
        at = 400.0 * i
        out.obd(at, i, 900, 1.0).gps(at + 1).laser(at + 2, "Hokuyo_URG-04LX", "front", [1000 + i] * 3)
        out.image(at + 3, 0, 8, 8, b"\xff\xd8\xff").velodyne(at + 4, [b"\xff\xee" + bytes(1204)])
    return out.bytes()


def ulog_0() -> bytes:
    """Return a log of version 0, which has no flags and no sync marks."""
    return bytes(
        UlogBuilder(1_000_000, version=0)
        .format("pair:uint64_t timestamp;float volt;")
        .info("char[3] sys_name", "PX4")
        .subscribe("pair", 1)
        .data(1, (1_000_000).to_bytes(8, "little") + bytes(4))
        .data(1, (1_010_000).to_bytes(8, "little") + bytes(4))
        .text(6, 1_020_000, "armed")
        .bytes()
    )


def ulog_appended() -> bytes:
    """Return a log to which two parts were appended after a crash."""
    out = UlogBuilder(1_000_000).flags().format("pair:uint64_t timestamp;float volt;").subscribe("pair", 1)
    for part in range(3):
        if part:
            out.append_part()
        for n in range(3):
            out.data(1, (1_000_000 + 100_000 * part + 10_000 * n).to_bytes(8, "little") + bytes(4))
    return bytes(out.bytes())


def small_mcap(compression: str | None, sums: bool = False) -> Callable[[], bytes]:
    return lambda: mcap_tiny(McapBuilder(chunk_bytes=120, compression=compression, sums=sums))


def bag(compression: str) -> Callable[[], bytes]:
    return lambda: bytes(version_2_0(few(), BagBuilder(compression, chunk_bytes=200)))


SMALL = {
    "bag 0": Small("rosbag", lambda: old.version_0([m for m in few() if m[0] == few()[0][0]]), rosbag),
    "bag 1.0": Small("rosbag", lambda: old.version_1_0(few()), rosbag),
    "bag 1.1": Small("rosbag", lambda: old.version_1_1(few()), rosbag),
    "bag 1.2": Small("rosbag", lambda: old.version_1_2(few()), rosbag),
    "bag 2.0": Small("rosbag", bag("none"), rosbag),
    "bag 2.0 bz2": Small("rosbag", bag("bz2"), rosbag),
    "bag 2.0 lz4": Small("rosbag", bag("lz4"), rosbag),
    "ulog 0": Small("ulog", ulog_0, ulog),
    "ulog 1": Small("ulog", lambda: bytes(ulog_builder.tiny()), ulog),
    "ulog appended": Small("ulog", ulog_appended, ulog),
    "bddf": Small("bddf", small_bddf, bddf),
    "carla": Small("carla", lambda: bytes(eventful().bytes()), carla),
    "koblenz": Small("koblenz", small_koblenz, koblenz),
    "mcap": Small("mcap", small_mcap(""), mcap),
    "mcap unchunked": Small("mcap", small_mcap(None), mcap),
    "mcap zstd": Small("mcap", small_mcap("zstd"), mcap),
    "mcap lz4": Small("mcap", small_mcap("lz4", sums=True), mcap),
}

#: Recordings of every release of CARLA, whose packets and layouts differ: for what may take longer.
CARLA = {
    f"carla {release}": Small(
        "carla", lambda release=release: bytes(eventful(release, frames=2).bytes()), carla
    )
    for release in RELEASES
}
