"""``--option NAME=VALUE``: options of the format of a new log, such as the version of a bag."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run
from support.oracles import genuine_rosbag
from support.samples.rosbag.builder import few, version_2_0

#: Arguments of each verb before ``--option``; the output is the bag ``out.bag``.
VERBS = {
    "convert": ["in.bag", "out.bag"],
    "slice": ["in.bag", "-o", "out.bag"],
    "merge": ["in.bag", "in.bag", "-o", "out.bag"],
    "sort": ["in.bag", "-o", "out.bag"],
    "recover": ["in.bag", "-o", "out.bag"],
    "record": ["out.bag", "--from", "log.ndjson"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a bag with LZ4 chunks and lines of JSON."""
    monkeypatch.chdir(tmp_path)
    logreel.slice(version_2_0(few()), tmp_path / "in.bag", compression="lz4")
    (tmp_path / "log.ndjson").write_text('{"topic": "/a", "time_ns": 1, "data": {"x": 1}}\n')
    return tmp_path


@pytest.mark.parametrize("version", ["1.1", "1.2", "2.0"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_writes_every_version_of_bags(run: Run, verb: str, version: str) -> None:
    done = run(verb, *VERBS[verb], "--option", f"version={version}")
    assert done.code == 0, done.err
    log = logreel.open("out.bag")
    assert (log.version, log.problems) == (version, ())
    many = {"merge": 2, "record": 0}.get(verb, 1)
    assert log.message_count == (many * logreel.open("in.bag").message_count or 1)


def test_parts_of_a_split_get_the_version(run: Run, folder: Path) -> None:
    assert run("split", "in.bag", "--by-topic", "-o", "parts", "--option", "version=1.2").code == 0
    assert {logreel.open(path).version for path in (folder / "parts").iterdir()} == {"1.2"}


def test_genuine_rosbag_reads_a_bag_of_version_1_2_without_index(run: Run) -> None:
    genuine_rosbag.genuine()
    assert (
        run("convert", "in.bag", "out.bag", "--option", "version=1.2", "--option", "indexed=false").code == 0
    )
    read = "import rosbag, sys\nbag = rosbag.Bag(sys.argv[1], allow_unindexed=True)\n"
    read += "print(bag.version, [(t, m[0], m[1].hex()) for t, m, _ in bag.read_messages(raw=True)])"
    done = subprocess.run([genuine_rosbag.SYSTEM, "-c", read, "out.bag"], capture_output=True, text=True)
    messages = logreel.open("in.bag").messages(order="file")
    found = [(m.channel.topic, m.channel.schema.name, bytes(m.data).hex()) for m in messages]
    assert done.stdout.strip() == f"102 {found}", done.stderr


def test_options_of_python(folder: Path) -> None:
    logreel.slice("in.bag", "out.bag", options={"version": "1.2", "indexed": False})
    assert logreel.open("out.bag").version == "1.2"
    logreel.convert("in.bag", "x.mcap", options={"profile": "ros1", "library": "mine"})
    assert b"mine" in (folder / "x.mcap").read_bytes()


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("color=red", "ROS 1 bag has no option 'color'; it has: version, compression, chunk_bytes, indexed"),
        ("version=3.0", "version '3.0'; bags are written as 2.0, 1.2 or 1.1"),
        ("version=2", "version=2: expected str"),
        ("chunk_bytes=big", "chunk_bytes='big': expected int"),
        ("version", "--option 'version': write NAME=VALUE"),
        ("=1", "--option '=1': write NAME=VALUE"),
    ],
)
def test_wrong_options_are_refused(run: Run, folder: Path, option: str, text: str) -> None:
    done = run("convert", "in.bag", "out.bag", "--option", option)
    assert (done.code, text in done.err) == (2, True), done.err
    assert not (folder / "out.bag").exists()


def test_a_compression_that_the_version_lacks_is_refused(run: Run) -> None:
    done = run("slice", "in.bag", "-o", "out.bag", "--compression", "lz4", "--option", "version=1.2")
    assert (done.code, "a bag of version 1.2 has none" in done.err) == (2, True)


def test_tables_have_no_options_of_a_format(run: Run) -> None:
    done = run("convert", "in.bag", "out.csv/", "--option", "version=1.2")
    assert (done.code, "is no log" in done.err) == (2, True)
