"""Damaged logs become undamaged ones with all readable content, and a list of losses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import logreel
from support.builders.contents import SAMPLES, content
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight, tiny

#: Counts that the manifest of the samples names.
BAGS = {
    "v20_dmg_unterminated_chunk.bag": (1402, 727),
    "v20_dmg_cut_mid_chunk.bag": (1402, 727),
    "v20_dmg_tail_cut.bag": (1706, None),
}


@pytest.mark.parametrize("name", BAGS)
def test_the_damaged_bags_keep_what_their_manifest_says(shared: Path, tmp_path: Path, name: str) -> None:
    path = shared / "data" / "rosbag" / name
    done = logreel.recover(path, tmp_path / "out.bag")
    messages, lost = BAGS[name]
    assert done.messages == messages
    assert lost in (None, done.lost_bytes)
    assert sum(p.size for p in logreel.open(path).problems if p.lost) == done.lost_bytes > 0
    assert not logreel.open(tmp_path / "out.bag").problems
    assert content(tmp_path / "out.bag") == content(path)


def test_every_real_log_can_be_recovered(shared: Path, tmp_path: Path) -> None:
    for n, path in enumerate(sorted((shared / "data").rglob("*"))):
        if path.suffix in SAMPLES and path.stat().st_size < 1_500_000:
            out = tmp_path / f"{n}{path.suffix}"
            # Checksums are compared when messages are copied; the log learns of it.
            log = logreel.open(path)
            done = logreel.recover(log, out)
            assert done.messages == log.message_count, path.name
            assert done.lost_bytes == sum(p.size for p in log.problems if p.lost), path.name
            assert not [p for p in logreel.open(out).problems if p.lost], path.name
            assert logreel.recover(out, tmp_path / f"again{n}{path.suffix}").lost == (), path.name


def test_losses_have_bytes_and_times(tmp_path: Path) -> None:
    whole = flight(4.0)
    at = len(whole) // 2
    damaged = whole[:at] + bytes(3000) + whole[at + 3000 : -7]
    log = logreel.open(damaged)
    done = logreel.recover(log, tmp_path / "out.ulg")
    assert [(x.code, x.offset, x.size) for x in done.lost] == [
        (p.code, p.offset, p.size) for p in log.problems
    ]
    hole, cut = done.lost
    assert hole.start_ns is not None
    assert hole.end_ns is not None
    assert hole.start_ns <= hole.end_ns
    messages = [(m.offset or 0, m.time) for m in log.messages(order="file")]
    assert hole.start_ns == max(time for _, time in sorted(m for m in messages if m[0] < hole.offset)[-3:])
    assert hole.end_ns == min(time for _, time in sorted(m for m in messages if m[0] > hole.offset)[:3])
    assert cut.end_ns is None
    assert done.size == len(damaged) - done.lost_bytes


@pytest.mark.parametrize("step", [1, 7])
def test_every_cut_of_a_small_log_is_recovered_without_problems(tmp_path: Path, step: int) -> None:
    whole, out = tiny(), tmp_path / "out.ulg"
    for end in range(len(whole) - 1, 16, -41 * step):
        log = logreel.open(whole[:end])
        done = logreel.recover(log, out, force=True)
        assert done.messages == log.message_count
        assert content(out) == content(log)
        assert not logreel.open(out).problems


def test_cut_bags_of_every_compression_are_recovered(tmp_path: Path) -> None:
    for name in ("none", "lz4", "bz2"):
        path, out = tmp_path / "a.bag", tmp_path / "b.bag"
        path.write_bytes(drive(2.0))
        logreel.slice(path, tmp_path / "c.bag", compression=name, force=True)
        data = (tmp_path / "c.bag").read_bytes()
        for share in (0.2, 0.6, 0.97):
            path.write_bytes(data[: int(len(data) * share)])
            done = logreel.recover(path, out, force=True)
            assert content(out) == content(path)
            assert done.lost
            assert not logreel.open(out).problems


def test_sort_of_two_logs_in_one_file_renames_channels_of_the_second(tmp_path: Path) -> None:
    """Topics of the second log get different names that are valid in a ULog."""
    log = logreel.open(tiny() + tiny())
    done = logreel.sort(log, tmp_path / "out.ulg")
    assert done.messages == log.message_count
    assert {one.topic for one in done.channels} == {
        "rate-2[1]" if name == "rate[1]@2" else name.replace("@", "-") for name in log if name[0] != "~"
    }
    assert any("became" in note for note in done.notes)
    assert not [p for p in logreel.open(tmp_path / "out.ulg").problems if p.lost]


@pytest.mark.parametrize("suffix", SAMPLES)
def test_an_unfinished_recording_is_recovered_under_its_final_name(
    tmp_path: Path, suffix: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = logreel.open(SAMPLES[suffix]())
    topic = next(ch.topic for ch in source.match(None) if len(ch) > 20)
    writer = logreel.create(f"x{suffix}", flush_every=None)
    number = writer.add_channel(topic, source[topic].schema, source[topic].metadata)
    for message in source.messages(topic):
        writer.write(number, message.time, message.data)
    writer.flush()
    writer.leave()
    before = Path(f"x{suffix}.active").read_bytes()
    done = run("recover", f"x{suffix}.active", "--json")
    assert done.json["output"] == f"x{suffix}"
    assert content(f"x{suffix}")[topic] == content(source)[topic]
    assert Path(f"x{suffix}.active").read_bytes() == before
    assert sorted(os.listdir()) == [f"x{suffix}", f"x{suffix}.active"]
    assert run("recover", f"x{suffix}.active").code == 1
    assert run("recover", f"x{suffix}").code == 2
    assert run("recover", f"x{suffix}", "-o", f"y{suffix}").code == 0


def test_the_verb_prints_losses(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "cut.ulg"
    path.write_bytes(flight(4.0)[:-7])
    done = run("recover", path, "-o", tmp_path / "out.ulg")
    assert done.code == 3
    assert "truncated" in done.out
    assert "could not be read" in done.err
    again = run("recover", path, "-o", tmp_path / "out.ulg", "--force", "--json")
    assert again.json["lost_bytes"] == sum(one["size"] for one in again.json["lost"]) > 0
