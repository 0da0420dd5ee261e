"""Messages of ROS 1 bags compared with genuine rosbag (where it is installed) and rosbags."""

from __future__ import annotations

import functools
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from support.builders.bag_variants import SYNTHETIC, many
from support.samples.rosbag.builder import Builder, drive, few, version_2_0
from support.samples.rosbag.types import TYPES, definition, md5

SAMPLES = sorted((SHARED / "data" / "rosbag").glob("v20_*.bag"))
#: LZ4 frames that genuine ROS refuses.
FOREIGN = {
    f"2.0 lz4 {kind}" for kind in ("linked", "content size", "no checksum", "block checksums", "everything")
}
#: Where peers differ: they read these by an index or summary that is missing, or want fields that are.
UNREADABLE = {
    "v20_dmg_cut_mid_chunk",
    "v20_dmg_tail_cut",
    "v20_dmg_unterminated_chunk",
    "v20_invalid_truncated_header",
}
_SYSTEM = "/usr/bin/python3"
_SCRIPT = """
import pickle, sys
import rosbag
rows = []
for topic, (kind, data, md5, *_), stamp in rosbag.Bag(sys.argv[1]).read_messages(raw=True):
    rows.append((topic, kind, md5, stamp.to_nsec(), bytes(data)))
sys.stdout.buffer.write(pickle.dumps(rows, 2))
"""


@functools.cache
def _genuine() -> bool:
    try:
        done = subprocess.run([_SYSTEM, "-c", "import rosbag"], capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def _by_time(log: logreel.Log) -> list[Any]:
    return sorted(
        (
            m.channel.topic.partition("[")[0],
            m.channel.schema.name,
            m.channel.metadata["md5sum"],
            m.time,
            bytes(m.data),
        )
        for m in log.messages()
    )


def _built(name: str, folder: Path) -> Path:
    path = folder / "built.bag"
    path.write_bytes(drive(4.0, name.partition(" ")[2]) if name.startswith("drive") else SYNTHETIC[name]())
    return path


BUILT = [n for n in SYNTHETIC if n.startswith("2.0")] + ["drive none", "drive bz2", "drive lz4"]


def _compare_genuine(path: Path) -> None:
    done = subprocess.run([_SYSTEM, "-c", _SCRIPT, str(path)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert sorted(pickle.loads(done.stdout)) == _by_time(logreel.open(path))  # noqa: S301


@pytest.mark.parametrize("path", [p for p in SAMPLES if p.stem not in UNREADABLE], ids=lambda p: p.stem)
def test_genuine_rosbag_reads_the_same_messages_of_samples(path: Path) -> None:
    if not _genuine():
        pytest.skip("rosbag of ROS is not installed (Debian: python3-rosbag)")
    if path.stem == "v20_ternaris_lz4":
        pytest.skip("genuine rosbag refuses the flags of its LZ4 frames")
    _compare_genuine(path)


@pytest.mark.parametrize("name", [n for n in BUILT if n not in FOREIGN and n != "2.0 star"])
def test_genuine_rosbag_reads_the_same_messages_of_built_bags(name: str, tmp_path: Path) -> None:
    if not _genuine():
        pytest.skip("rosbag of ROS is not installed (Debian: python3-rosbag)")
    _compare_genuine(_built(name, tmp_path))


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_genuine_rosbag_refuses_other_lz4_flags(name: str, tmp_path: Path) -> None:
    """This shows that the flags of the builder are written."""
    if not _genuine():
        pytest.skip("rosbag of ROS is not installed (Debian: python3-rosbag)")
    path = _built(name, tmp_path)
    assert subprocess.run([_SYSTEM, "-c", _SCRIPT, str(path)], capture_output=True).returncode
    assert len(_by_time(logreel.open(path))) == len(many())


def _compare_rosbags(path: Path) -> None:
    rosbags = pytest.importorskip("rosbags.rosbag1", reason="rosbags is not installed")
    with rosbags.Reader(path) as reader:
        rows = [(c.topic, c.msgtype, c.digest, time, bytes(data)) for c, time, data in reader.messages()]
    # That library tidies topic names.
    mine = [
        (t.replace("//", "/"), _renamed(kind), m, time, data)
        for t, kind, m, time, data in _by_time(logreel.open(path))
    ]
    assert sorted(rows) == sorted(mine)


def _renamed(kind: str) -> str:
    """Return rows with type names as rosbags writes them."""
    package, _, name = kind.partition("/")
    return f"{package}/msg/{name}"


@pytest.mark.parametrize("path", [p for p in SAMPLES if p.stem not in UNREADABLE], ids=lambda p: p.stem)
def test_rosbags_reads_the_same_messages_of_samples(path: Path) -> None:
    if path.stem == "v20_real_cturtle_2010":
        pytest.skip("rosbags stops at the index records of C Turtle")
    _compare_rosbags(path)


@pytest.mark.parametrize("name", BUILT)
def test_rosbags_reads_the_same_messages_of_built_bags(name: str, tmp_path: Path) -> None:
    if name in ("2.0 entries of 20", "2.0 entries of 24"):
        pytest.skip("rosbags stops at the index records of C Turtle")
    if name in ("2.0 star", "2.0 extra fields"):
        pytest.skip("rosbags reads types of the form package/name only, and no field of encryption at all")
    _compare_rosbags(_built(name, tmp_path))


def test_rosbags_reads_the_same_messages_of_a_tiny_bag(tmp_path: Path) -> None:
    path = tmp_path / "tiny.bag"
    path.write_bytes(version_2_0(few(), Builder(chunk_bytes=400)))
    _compare_rosbags(path)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_checksums_of_the_builder_are_those_of_rosbags(kind: str) -> None:
    """The builder computes checksums itself; rosbags from its own definitions."""
    typesys = pytest.importorskip("rosbags.typesys", reason="rosbags is not installed")
    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC)
    package, _, name = kind.partition("/")
    if f"{package}/msg/{name}" not in store.types:
        pytest.skip("rosbags does not ship this type")
    text, digest = store.generate_msgdef(f"{package}/msg/{name}")
    assert md5(kind) == digest
    ours = [line for line in definition(kind).splitlines() if line.startswith("MSG: ")]
    assert sorted(ours) == sorted(line for line in text.splitlines() if line.startswith("MSG: "))
