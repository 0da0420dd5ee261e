"""A log is its content: where it lies are columns; and what is removed is gone, whatever dies meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from logreel.errors import LogError, UsageError
from logreel.fleet import Dataset, ingest, query, remove, status, verify
from logreel.fleet.jobs import Job
from support.builders.fleets import firmware_log
from support.harness.cli_runner import Run, environment
from support.harness.faults import Inline
from support.harness.forked import forked_python, run_forked
from support.samples.ulog.builder import flight


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a folder with three logs."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for n in (1, 2, 3):
        (folder / f"{n}.ulg").write_bytes(firmware_log(n, later=False))
    return folder


def counts(fleet: Path) -> tuple[int, int]:
    """Return the numbers of logs and of rows; all files of the dataset are as they were written."""
    found = verify(fleet)
    assert (found.wrong, found.orphans) == ({}, [])
    opened = Dataset(fleet)
    assert found.rows == sum(opened.table(topic, ["log"]).num_rows for topic in opened.topics)
    return len(opened.rows), found.rows


def places(fleet: Path) -> list[list[str]]:
    return [row.paths for row in Dataset(fleet).rows]


def test_moving_a_folder_of_logs_adds_no_rows_and_updates_their_places(logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    ingest(logs, fleet, engine=Inline())
    files = {path: path.stat().st_ino for path in fleet.rglob("*.parquet")}
    assert counts(fleet) == (3, 60)
    logs.rename(tmp_path / "moved")
    done = ingest(tmp_path / "moved", fleet, engine=Inline())
    assert (len(done.moved), done.new, done.removed, done.parts) == (3, [], [], 0)
    assert counts(fleet) == (3, 60)
    assert places(fleet) == [[str(tmp_path / "moved" / f"{n}.ulg")] for n in (1, 2, 3)]
    assert {path: path.stat().st_ino for path in fleet.rglob("*.parquet")} == files
    (tmp_path / "moved" / "1.ulg").rename(tmp_path / "moved" / "first.ulg")
    done = ingest(tmp_path / "moved", fleet, engine=Inline())
    assert (len(done.moved), len(done.unchanged), done.removed) == (1, 2, [])
    assert counts(fleet) == (3, 60)
    assert len(ingest(tmp_path / "moved", fleet, engine=Inline()).unchanged) == 3


def test_copies_add_no_rows_and_are_places_newest_first(logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    shutil.copy(logs / "1.ulg", logs / "same.ulg")
    first = ingest(logs, fleet, engine=Inline())
    assert ([Path(one).name for one in first.copies], len(first.new)) == (["same.ulg"], 3)
    assert counts(fleet) == (3, 60)
    shutil.copytree(logs, tmp_path / "copy")
    done = ingest([logs, tmp_path / "copy"], fleet, engine=Inline())
    assert (len(done.copies), len(done.unchanged), done.parts) == (4, 4, 0)
    assert counts(fleet) == (3, 60)
    (key,) = Dataset(fleet).keys_of(str(logs / "1.ulg"))
    own = Dataset(fleet).manifests[key].row
    assert own.paths == [
        str(folder / n) for folder in (tmp_path / "copy", logs) for n in ("1.ulg", "same.ulg")
    ]
    assert own.path == own.paths[0]
    table = query("SELECT log, path, paths FROM logreel.logs JOIN odd USING (log) GROUP BY ALL", fleet)
    assert table.filter([one == key for one in table["log"].to_pylist()])["paths"].to_pylist() == [own.paths]
    # Without the copies, the log is where it was.
    shutil.rmtree(tmp_path / "copy")
    (logs / "same.ulg").unlink()
    done = ingest([logs], fleet, engine=Inline())
    assert (len(done.unchanged), done.removed) == (3, [])


def test_the_same_head_tail_and_size_are_not_the_same_log(logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    whole = bytearray(flight(6.0))
    assert len(whole) > 160 << 10
    (logs / "a.ulg").write_bytes(whole)
    ingest(logs, fleet, engine=Inline())
    before = counts(fleet)
    whole[len(whole) // 2] ^= 1
    (logs / "b.ulg").write_bytes(whole)
    done = ingest(logs, fleet, engine=Inline())
    assert ([Path(one).name for one in done.new], done.copies) == (["b.ulg"], [])
    assert counts(fleet)[0] == before[0] + 1


def test_touching_a_log_changes_nothing(logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    ingest(logs, fleet, engine=Inline())
    os.utime(logs / "1.ulg", ns=(1, 1))
    done = ingest(logs, fleet, engine=Inline())
    assert (done.parts, done.changed, len(done.unchanged)) == (0, [], 3)


def test_logs_that_change_places_keep_their_rows(logs: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    ingest(logs, fleet, engine=Inline())
    (logs / "1.ulg").rename(logs / "x")
    (logs / "2.ulg").rename(logs / "1.ulg")
    (logs / "x").rename(logs / "2.ulg")
    done = ingest(logs, fleet, engine=Inline())
    assert (done.parts, done.new, done.removed) == (0, [], [])
    assert counts(fleet) == (3, 60)


@pytest.mark.parametrize("moment", ["write", "unlink"])
def test_a_run_that_dies_while_a_log_replaces_another_leaves_one_of_them(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    fleet = tmp_path / "fleet"
    ingest(logs, fleet, engine=Inline())
    (logs / "2.ulg").write_bytes(firmware_log(9, later=False))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        where = "dataset.Manifest.write" if moment == "write" else "upkeep.remove_manifests"
        patch.setattr(f"logreel.fleet.{where}", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(logs, fleet, engine=Inline())
    assert verify(fleet).wrong == {}
    left = Dataset(fleet)
    assert (len(left.rows), left.table("odd").num_rows) == (3, 60)
    ingest(logs, fleet, engine=Inline())
    assert counts(fleet) == (3, 60)
    # The log that was replaced may come back.
    (logs / "again.ulg").write_bytes(firmware_log(2, later=False))
    ingest(logs, fleet, engine=Inline())
    assert counts(fleet) == (4, 80)


def test_removing_deletes_rows_files_and_the_row_of_the_catalogue(
    run: Run, logs: Path, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet"
    (logs / "flight.ulg").write_bytes(flight(1.0))
    ingest(logs, fleet, engine=Inline())
    done = run("fleet", "remove", fleet, logs / "flight.ulg")
    assert (done.code, done.err) == (0, "")
    assert "1 removed; " in done.out
    assert counts(fleet) == (3, 60)
    assert Dataset(fleet).topics == ["odd"]
    assert {path.name for path in fleet.iterdir()} == {"_catalog", "topic=odd"}
    again = run("fleet", "remove", fleet, logs / "flight.ulg")
    assert (again.code, again.err) == (0, f"logreel: {logs / 'flight.ulg'}: not in the dataset\n")
    key = Dataset(fleet).rows[0].log
    assert run("fleet", "remove", fleet, key[:8], "--json").json["logs"] == {key: [str(logs / "1.ulg")]}
    assert counts(fleet) == (2, 40)
    # A folder that does not exist any more still means its logs.
    logs.rename(tmp_path / "away")
    assert run("fleet", "remove", fleet, logs).code == 0
    assert counts(fleet) == (0, 0)
    ingest(tmp_path / "away", fleet, engine=Inline())
    assert counts(fleet)[0] == 4


def test_the_begin_of_several_keys_is_refused(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = tmp_path / "fleet"
    for n in range(2):
        (logs / f"gone{n}.ulg").symlink_to("nowhere.ulg")
    ingest(logs, fleet, engine=Inline())
    monkeypatch.setattr("logreel.fleet.dataset.KEY_LENGTH", 5)
    with pytest.raises(UsageError, match="path- begins the keys of 2 logs"):
        remove(fleet, "path-")
    assert counts(fleet) == (5, 60)
    # There is nothing to keep of files that could never be read.
    (logs / "gone0.ulg").unlink()
    assert len(ingest(logs, fleet, engine=Inline()).removed) == 1
    assert counts(fleet) == (4, 60)


@pytest.mark.parametrize("call", ["unlink", "rmdir", "fsync"])
def test_killing_a_removal_leaves_the_old_or_the_new_state(logs: Path, tmp_path: Path, call: str) -> None:
    """Kill the process at each call of the system that changes the dataset, one after the other."""
    (logs / "flight.ulg").write_bytes(flight(1.0))
    ingest(logs, tmp_path / "whole", engine=Inline())
    rows = counts(tmp_path / "whole")[1]
    program = (
        "import os, signal, sys\n"
        f"left, call = int(sys.argv[3]), os.{call}\n"
        "def counted(*a, **o):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return call(*a, **o)\n"
        f"os.{call} = counted\n"
        "from logreel.fleet import remove\n"
        "remove(sys.argv[1], sys.argv[2])\n"
    )
    states = set()
    for at in (0, 1, 2, 3, 5, 8, 13, 21, 34):
        fleet = tmp_path / "fleet"
        shutil.copytree(tmp_path / "whole", fleet)
        line = forked_python("-c", program, fleet, logs / "flight.ulg", str(at))
        code = run_forked(line, environment(), 60).returncode
        assert code in (0, -signal.SIGKILL)
        found = verify(fleet)
        assert found.wrong == {}
        state = len(Dataset(fleet).rows), found.rows
        assert state in ((4, rows), (3, 60))
        states.add((state, code))
        remove(fleet, logs / "flight.ulg")
        assert counts(fleet) == (3, 60)
        assert list((fleet / "_catalog" / "stage").iterdir()) == []
        shutil.rmtree(fleet)
    assert len(states) > 1 or call == "rmdir"


def test_a_dataset_that_is_written_cannot_lose_logs(logs: Path, tmp_path: Path) -> None:
    from logreel.fleet.dataset import locked

    ingest(logs, tmp_path / "fleet", engine=Inline())
    with locked(Dataset(tmp_path / "fleet")), pytest.raises(LogError, match="another process"):
        remove(tmp_path / "fleet", logs)


class Dying(Inline):
    """An engine that dies after a number of jobs."""

    def __init__(self, left: int) -> None:
        self.left, self.jobs = left, list[Job]()

    def run(self, jobs):  # type: ignore[no-untyped-def]
        for job, result in super().run(jobs):
            self.jobs.append(job)
            yield job, result
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt


def test_plans_of_a_run_that_was_killed_while_planning_are_kept(logs: Path, tmp_path: Path) -> None:
    for n in range(4, 11):
        (logs / f"{n}.ulg").write_bytes(firmware_log(n, later=n > 8))
    ingest(logs, tmp_path / "whole", engine=Inline())
    fleet = tmp_path / "fleet"
    with pytest.raises(KeyboardInterrupt):
        ingest(logs, fleet, engine=Dying(6))
    assert status(fleet).planned == 6
    rest = Dying(-1)
    ingest(logs, fleet, engine=rest)
    assert sum(job["do"] == "plan" for job in rest.jobs) == 4
    assert status(fleet).planned == 0
    files = [
        sorted((p.relative_to(root), p.read_bytes()) for p in root.rglob("*") if p.is_file())
        for root in (fleet, tmp_path / "whole")
    ]
    assert files[0] == files[1]
    # A log that changes after it was planned is planned again.
    (logs / "11.ulg").write_bytes(firmware_log(11, later=False))
    (logs / "12.ulg").write_bytes(firmware_log(12, later=False))
    with pytest.raises(KeyboardInterrupt):
        ingest(logs, fleet, engine=Dying(2))
    (logs / "12.ulg").write_bytes(firmware_log(13, later=False))
    rest = Dying(-1)
    ingest(logs, fleet, engine=rest)
    assert [Path(job["path"]).name for job in rest.jobs if job["do"] == "plan"] == ["12.ulg"]
    assert counts(fleet) == (12, 240)
