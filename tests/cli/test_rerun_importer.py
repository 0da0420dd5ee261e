"""The importer program that Rerun calls for every file it opens."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from logreel.cli.rerun_importer import INCOMPATIBLE, main
from support.builders.recordings import entities, names
from support.harness.cli_runner import SRC, Spawn

CALL = "import sys; from logreel.cli.rerun_importer import main; code = main(sys.argv[1:]); "
#: As Rerun 0.41 calls it, with an option of another day.
OPTIONS = (
    "--application-id", "viewer", "--opened-application-id", "other", "--recording-id", "drive-7",
    "--opened-recording-id", "none", "--entity-path-prefix", "/world", "--static", "--time_sequence", "a=1",
    "--time_duration_nanos", "b=2", "--time_timestamp_nanos", "c=3", "--some-day", "x",
)  # fmt: skip


def test_other_files_give_exit_code_66(
    logs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The program sets it for itself; left behind, all later commands of tests would be processes and no forks.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    (logs / "x.MCAP").write_bytes((logs / "tiny.ulg").read_bytes())
    for name in ("photo.jpg", "empty.ulg", "nothing", "", "x.MCAP"):
        assert main([str(logs / name), *OPTIONS]) == INCOMPATIBLE == 66
    assert capfd.readouterr() == ("", "")


def test_other_files_are_declined_before_rerun_is_imported(logs: Path, spawn: Spawn) -> None:
    code = CALL + "sys.exit(code if not {'rerun', 'pyarrow', 'click'} & set(sys.modules) else 1)"
    before = time.monotonic()
    done = spawn("-c", code, logs / "photo.jpg", *OPTIONS)
    assert (done.returncode, done.stdout, done.stderr) == (66, b"", b"")
    assert time.monotonic() - before < 20


def test_a_log_is_written_to_standard_output(
    logs: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("rerun")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    code = main([str(logs / "flight.ulg"), *OPTIONS])
    out, err = capfdbinary.readouterr()
    assert (code, err) == (0, b"")
    (tmp_path / "x.rrd").write_bytes(out)
    assert names(tmp_path / "x.rrd") == ("viewer", "drive-7")
    found = entities(tmp_path / "x.rrd")
    assert "/world/vehicle_attitude/q" in found
    assert all(path.startswith("/world/") for path in found)


def test_a_log_that_cannot_be_read_is_an_error(
    logs: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    code = main([str(logs / "incompatible.ulg")])
    out, err = capfdbinary.readouterr()
    assert (code, out) == (1, b"")
    assert err.startswith(b"logreel: ")
    assert err.count(b"\n") == 1
    # A damaged one is shown as far as it goes.
    pytest.importorskip("rerun")
    assert main([str(logs / "damaged.ulg")]) == 0
    assert capfdbinary.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="the command is a script of a POSIX shell here")
def test_rerun_finds_the_importer(
    logs: Path, spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rerun", minversion="0.32")
    command = tmp_path / "bin" / "rerun-importer-logreel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{CALL}sys.exit(code)" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    code = """
        import sys, rerun
        recording = rerun.RecordingStream("all", recording_id="one")
        recording.save(sys.argv[2])
        recording.log_file_from_path(sys.argv[1])
        recording.flush()
        recording.disconnect()
    """
    done = spawn("-c", textwrap.dedent(code), logs / "tiny.ulg", tmp_path / "x.rrd")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "x.rrd") == ("all", "one")
    assert any(entity.values["Scalars:scalars"] for entity in entities(tmp_path / "x.rrd").values())


def test_the_package_installs_the_command() -> None:
    text = (SRC.parent / "pyproject.toml").read_text()
    assert 'rerun-importer-logreel = "logreel.cli.rerun_importer:main"\n' in text
