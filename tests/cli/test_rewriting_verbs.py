"""The verbs that write logs: options, output, exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import logreel
from support.builders.contents import SAMPLES
from support.formats import builtin_formats, sample_log
from support.harness.cli_runner import Run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for suffix, make in SAMPLES.items():
        (tmp_path / f"a{suffix}").write_bytes(make())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_slice_selects_topics_and_interval(run: Run) -> None:
    done = run(
        "slice", "a.bag", "-o", "b.bag", "-t", "/t*", "-t", "/imu", "-x", "/tf", "-S", "+0.2s", "-E", "-0.2s"
    )
    assert done.code == 0, done.err
    assert done.err.count("\n") == 2, done.err
    interval, written = done.err.splitlines()
    assert interval.startswith("logreel: a.bag: interval: +0.2 s to ")
    assert written.startswith("logreel: wrote ")
    log, source = logreel.open("b.bag"), logreel.open("a.bag")
    assert list(log) == ["/imu"]
    assert source.start is not None
    assert log.start is not None
    assert log.start >= source.start + 2 * 10**8
    told = run(
        "slice", "a.bag", "-o", "c.bag", "-n", "5", "--compression", "lz4", "--keep-latched", "--json"
    ).json
    assert (told["messages"], told["notes"], told["skipped"]) == (5, [], [])
    assert logreel.open("c.bag").metadata["compression"] == ["lz4"]
    assert run("slice", "a.bag", "-o", "c.bag").code == 1
    assert run("slice", "a.bag", "-o", "c.bag", "--force").code == 0
    assert run("slice", "a.bag", "-o", "a.bag", "--force").code == 2
    assert run("slice", "a.bag", "-o", "x.bag", "--compression", "rar").code == 2
    assert run("slice", "a.bag").code == 2
    assert "x.bag" not in os.listdir()


def test_split_parts_merge_to_the_same_messages(run: Run) -> None:
    done = run("split", "a.ulg", "--every", "1s", "-o", "parts", "--json")
    assert done.code == 0
    files = [one["output"] for one in done.json["logs"]]
    assert sorted(files) == [f"parts/{name}" for name in sorted(os.listdir("parts"))]
    assert run("split", "a.ulg", "--every", "1s", "-o", "parts").code == 1
    assert run("merge", *files, "-o", "b.ulg").code == 0
    assert logreel.open("b.ulg").message_count == logreel.open("a.ulg").message_count
    assert run("split", "a.bag", "--by-topic", "-o", "topics").code == 0
    assert len(os.listdir("topics")) == len(list(logreel.open("a.bag")))
    assert run("split", "a.bag", "--size", "0.06MiB", "-o", "sized").code == 0
    assert all(os.path.getsize(f"sized/{name}") <= 0.06 * 2**20 for name in os.listdir("sized"))
    assert len(os.listdir("sized")) > 1
    for wrong in (
        ["--size", "much"],
        ["--every", "soon"],
        [],
        ["--size", "1MB", "--by-topic"],
        ["--every", "-1s"],
    ):
        assert run("split", "a.bag", *wrong, "-o", "none").code == 2
    assert run("split", "a.bag", "--by-topic", "-o", "a.ulg").code == 1


def test_merge_renames_topics_and_shifts_clocks(run: Run) -> None:
    args = ["--prefix", "", "--prefix", "/b", "--rename", "/imu=/inertia", "--align", "start"]
    done = run("merge", "a.bag", "a.bag", *args, "-o", "b.bag", "--json")
    assert done.code == 0, done.err
    assert done.json["paths"] == ["a.bag", "a.bag"]
    assert {"/inertia", "/b/inertia", "/odom", "/b/odom"} <= set(logreel.open("b.bag"))
    for wrong in (["--prefix", "/x"], ["--rename", "imu"], ["--rename", "/no=/yes"], ["--align", "sun"]):
        assert run("merge", "a.bag", "a.bag", *wrong, "-o", "c.bag").code == 2
    assert run("merge", "a.bag", "a.ulg", "-o", "c.bag").code == 2
    assert run("merge", "-o", "c.bag").code == 2


def test_sort_orders_messages_by_time(run: Run) -> None:
    assert run("sort", "a.bag", "-o", "b.bag", "--compression", "bz2").code == 0
    times = [m.time for m in logreel.open("b.bag").messages(order="file")]
    assert times == sorted(times)
    assert len(times) == logreel.open("a.bag").message_count
    for fmt in builtin_formats().values():
        if fmt.create is None:
            Path("other").write_bytes(sample_log(fmt.name))
            done = run("sort", "other", "-o", "sorted")
            assert done.code == 1
            assert "cannot be written yet; what can be: " in done.err


def test_a_damaged_log_gives_exit_code_3(run: Run) -> None:
    Path("cut.ulg").write_bytes(Path("a.ulg").read_bytes()[:-5])
    for verb in ("slice", "sort", "recover"):
        assert run(verb, "cut.ulg", "-o", f"{verb}.ulg").code == 3
        assert not logreel.open(f"{verb}.ulg").problems
    assert run("merge", "cut.ulg", "-o", "merged.ulg").code == 3
    assert run("split", "cut.ulg", "--by-topic", "-o", "parts").code == 3


def test_convert_to_mcap_and_back_keeps_messages(run: Run) -> None:
    done = run("convert", "a.bag", "b.mcap", "--raw")
    assert (done.code, "messages of 10 channels to b.mcap" in done.err) == (0, True)
    told = run("convert", "b.mcap", "c.bag", "--strict", "--compression", "lz4", "--json").json
    assert told["skipped"] == []
    assert {one["topic"]: one["rows"] for one in told["channels"]} == {
        topic: len(ch) for topic, ch in logreel.open("a.bag").channels.items()
    }
    assert logreel.open("c.bag").metadata["compression"] == ["lz4"]
    done = run("convert", "a.mcap", "d.bag", "--raw", "--json")
    assert done.code == 3
    assert sum(text.startswith("channel '/") for text in done.json["skipped"]) == 4
    done = run("convert", "a.mcap", "e.bag", "--raw", "--strict")
    assert (done.code, "nothing is written" in done.err, Path("e.bag").exists()) == (1, True, False)
    assert run("convert", "a.bag", "x.ndjson", "--raw").code == 2
    assert run("recover", "a.ulg", "-o", "r.mcap").code == 0
    assert logreel.open("r.mcap").converted_from == "ulog"
    assert run("check", "r.mcap").code == 0


def test_convert_to_mcap_adds_channels_for_other_tools(run: Run) -> None:
    done = run("convert", "a.ulg", "x.mcap", "--chunk-size", "20kB", "--compression", "none", "--json").json
    assert "sensor_gps/LocationFix" in {one["topic"] for one in done["channels"]}
    facts = logreel.open("x.mcap").metadata["mcap"]
    assert facts["chunks"] > 5
    assert facts["compression"] == ["none"]
    back = run("convert", "x.mcap", "back.ulg")
    assert (back.code, "was made of 'sensor_gps'" in back.err) == (0, True)
    assert len(logreel.open("back.ulg")["sensor_gps"]) == len(logreel.open("a.ulg")["sensor_gps"])
    assert run("convert", "a.ulg", "x.ndjson", "--chunk-size", "1MB").code == 2
    assert run("convert", "a.ulg", "y.ulg", "--chunk-size", "1MB").code == 2


def test_regular_expressions_choose_topics(run: Run) -> None:
    assert run("slice", "a.bag", "-o", "b.bag", "-t", "re:/(tf|imu)").code == 0
    assert set(logreel.open("b.bag")) == {"/tf", "/imu"}
    assert run("merge", "a.bag", "b.bag", "-o", "c.bag", "-t", "/tf", "-t", "/imu", "-x", "re:/t.").code == 0
    assert set(logreel.open("c.bag")) == {"/imu"}
    assert run("split", "a.bag", "-o", "parts", "--by-topic", "-t", "re:/i.*", "-x", "/nothing").code == 2
    assert run("split", "a.bag", "-o", "parts", "--by-topic", "-t", "re:/(tf|imu)", "-x", "/tf").code == 0
    assert [str(path) for path in Path("parts").iterdir()] == ["parts/a_imu.bag"]
    shown = run("cat", "a.bag", "-t", "re:/(tf|imu)", "-x", "/imu", "--format", "ndjson").out
    assert {line.split('"')[3] for line in shown.splitlines()} == {"/tf"}
    assert run("cat", "a.bag", "-t", "re:(").code == 2


def test_chunk_size_sets_the_number_of_chunks(run: Run) -> None:
    assert run("slice", "a.bag", "-o", "b.bag", "--chunk-size", "2kB").code == 0
    assert logreel.open("b.bag").metadata["chunks"] > 2 * logreel.open("a.bag").metadata["chunks"]
    assert run("slice", "a.bag", "-o", "c.bag", "--chunk-size", "big").code == 2
    assert run("slice", "a.ulg", "-o", "c.ulg", "--chunk-size", "2kB").code == 2


def test_every_verb_that_writes_a_log_chooses_its_chunks(run: Run) -> None:
    many = 2 * int(logreel.open("a.bag").metadata["chunks"])
    for verb, out in (("merge", "m.bag"), ("sort", "s.bag"), ("recover", "r.bag")):
        assert run(verb, "a.bag", "-o", out, "--chunk-size", "2kB").code == 0
        assert logreel.open(out).metadata["chunks"] > many
        assert run(verb, "a.ulg", "-o", "no.ulg", "--chunk-size", "2kB").code == 2
        assert run(verb, "a.bag", "-o", "no.bag", "--chunk-size", "big").code == 2
    assert run("split", "a.bag", "-o", "parts", "--every", "1000s", "--chunk-size", "2kB").code == 0
    (part,) = Path("parts").iterdir()
    assert logreel.open(part).metadata["chunks"] > many
