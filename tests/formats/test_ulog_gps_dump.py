"""Raw communication with GPS receivers, against the pieces that were written and pyulog's ``ulog_extract_gps_dump``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import logreel
from logreel.formats.ulog.commands import gps_dump
from support.builders.ulog_gps import Piece, gps_log, pieces
from support.harness.cli_runner import Run, Spawn
from support.samples.ulog.builder import tiny


def expected(some: list[Piece], instance: int, to_device: bool) -> bytes:
    return b"".join(one.data for one in some if (one.instance, one.to_device) == (instance, to_device))


@pytest.mark.parametrize("to_device", [False, True])
@pytest.mark.parametrize("instance", [0, 1])
def test_the_bytes_are_those_of_one_receiver_and_direction(instance: int, to_device: bool) -> None:
    some = pieces()
    found = gps_dump(logreel.open(gps_log(some)), instance, to_device)
    assert found.read() == expected(some, instance, to_device)
    assert found.about["bytes"] == len(found.read()) > 0
    assert found.notes == ()


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("instance", [0, 1])
def test_the_files_are_those_of_ulog_extract_gps_dump(
    instance: int, old: bool, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = pytest.importorskip("pyulog.extract_gps_dump")
    path = tmp_path / "a.ulg"
    path.write_bytes(gps_log(pieces(), old))
    monkeypatch.setattr(sys, "argv", ["x", str(path), "-o", str(tmp_path), "-i", str(instance)])
    genuine.main()
    for flags, name in (((), "from"), (("--to-device",), "to")):
        done = run(
            "ulog", "gps-dump", path, "--instance", str(instance), *flags, "-o", tmp_path / f"{name}.ubx"
        )
        assert done.code == 0, done.err
        theirs = (tmp_path / f"a_{instance}_{name}_device.dat").read_bytes()
        assert (tmp_path / f"{name}.ubx").read_bytes() == theirs
        assert theirs or (old and instance)


def test_bytes_go_into_a_pipe_and_numbers_to_json(tmp_path: Path, spawn: Spawn, run: Run) -> None:
    some = pieces(50)
    path = tmp_path / "a.ulg"
    path.write_bytes(gps_log(some, dropouts=2))
    done = spawn("-m", "logreel", "ulog", "gps-dump", path)
    assert done.stdout == expected(some, 0, False)
    assert b"the log has 2 dropouts: parts of the communication can be missing" in done.stderr
    answer = json.loads(run("ulog", "gps-dump", path, "--json").out)
    assert (answer["bytes"], answer["direction"]) == (len(done.stdout), "from")


def test_logs_without_such_messages_are_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(tiny())
    done = run("ulog", "gps-dump", path, "-o", tmp_path / "x")
    assert done.code == 1
    assert "no messages gps_dump" in done.err
    assert not (tmp_path / "x").exists()
    assert run("ulog", "gps-dump", path, "--instance", "-1").code == 2


def test_a_receiver_that_was_not_logged_gives_an_empty_file_with_a_note() -> None:
    found = gps_dump(logreel.open(gps_log(pieces())), 5)
    assert found.read() == b""
    assert found.notes == ("nothing was logged of receiver 5 in this direction; receivers: [0, 1]",)


def test_sizes_beyond_the_message_are_limited_with_a_note() -> None:
    log = logreel.open(
        gps_log([Piece(0, False, b"ab"), Piece(0, False, b"")]).replace(b"\x02ab\xee", b"\x7fab\xee")
    )
    found = gps_dump(log)
    assert found.read() == b"ab" + 77 * b"\xee"
    assert found.notes == ("1 messages state more bytes than they have",)
