"""A disk that does not take the name of a complete file: the file stays, alone, and the error says so."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

import logreel
from support.builders.sample_logs import tiny
from support.harness.cli_runner import Run


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fsync of folders fail."""
    sync = os.fsync

    def fail(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.usefixtures("no_sync")
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ["slice", "a.ulg", "-o", "out.ulg"],
        ["convert", "a.ulg", "out.ndjson"],
        ["convert", "a.ulg", "out.csv/"],
    ],
    ids=["log", "file", "folder"],
)
def test_an_output_is_complete_and_alone_after_a_failed_sync_of_its_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], force: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(tiny())
    done = run(*words, *["--force"] * force)
    out = words[-1].rstrip("/")
    if done.code == 1 and "is complete" in done.err:
        assert "it may be missing after a power failure" in done.err
        assert sorted(os.listdir()) == sorted(["a.ulg", out])
        if out == "out.ulg":
            assert not logreel.open(out).problems
    else:
        # Nothing was renamed before the failure.
        assert done.code == 1, done.err
        assert os.listdir() == ["a.ulg"]
