"""A dataset has the same bytes whatever the engine does, and whatever dies while it is written."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import struct
from collections import Counter
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.fleet import Dataset, LocalEngine, ingest, ingesting, report, status, verify
from logreel.io.atomic_file import sync_file, sync_folder
from support.builders.fleets import firmware_log, make_fleet
from support.harness.faults import Faults, Inline, started_ingest
from support.samples.ulog.builder import Builder, flight

#: Number of files; ``make test-fleet`` runs 400.
FILES = int(os.environ.get("LOGREEL_FLEET", "26"))


class Local(LocalEngine):
    """The engine of this machine, without its processes."""

    run = Inline.run


def content(dataset: Path) -> dict[str, str]:
    """Return digests of all files of a dataset by path."""
    return {
        path.relative_to(dataset).as_posix(): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in sorted(dataset.rglob("*"))
        if path.is_file()
    }


def test_a_log_that_the_disk_does_not_take_fails_alone_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, dataset = tmp_path / "logs", tmp_path / "fleet"
    logs.mkdir()
    for number in (1, 2):
        (logs / f"{number}.ulg").write_bytes(flight(1.0, number))
    sync, refused = sync_file, list[str]()

    def sync_once(path: Path) -> None:
        if not refused:
            refused.append(path.name)
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    monkeypatch.setattr(ingesting, "sync_file", sync_once)
    done = ingest(logs, dataset, engine=Local())
    assert len(done.failed) == 1
    assert "cannot be written to the disk: input/output error" in str(done.failed)
    sound = Dataset(dataset)
    assert sum(not manifest.parts for manifest in sound.manifests.values()) == 1
    checked = verify(dataset)
    assert (checked.wrong, checked.orphans) == ({}, [])
    again = ingest(logs, dataset, engine=Local())
    assert not again.failed
    assert len(again.changed) == 1
    assert content(dataset) == content(_ingested(logs, tmp_path / "other"))


def _ingested(logs: Path, dataset: Path) -> Path:
    ingest(logs, dataset, engine=Local())
    return dataset


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_fleet(tmp_path_factory.mktemp("logs"), FILES)


@pytest.fixture(scope="module")
def dataset(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one") / "fleet"
    done = ingest(files, path, engine=Local(), target_bytes=400_000)
    pictures = sum(number % 12 == 10 for number in range(FILES))
    assert len(done.ignored) == pictures
    assert len(done.new) + len(done.copies) == FILES + 1 - pictures
    assert len({one.read_bytes() for one in files.rglob("*.*") if one.suffix != ".jpg" and one.exists()}) == (
        len(done.new) - 1
    )
    return path


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faults:
    found = Faults(tmp_path / "faults")
    monkeypatch.setenv("PYTHONPATH", str(found.folder))
    return found


def test_the_dataset_has_every_row_of_every_log(files: Path, dataset: Path) -> None:
    found = Dataset(dataset)
    expected: dict[str, int] = {}
    contents = set()
    for path in sorted(files.rglob("log_*")):
        # A log is its content: a second place adds no rows.
        if path.suffix == ".jpg" or path.read_bytes() in contents:
            continue
        contents.add(path.read_bytes())
        try:
            log = logreel.open(path)
        except (LogError, OSError):
            (key,) = found.keys_of(str(path))
            assert found.manifests[key].row.status == "failed"
            continue
        with log:
            for ch in log.match(None):
                expected[ch.topic] = expected.get(ch.topic, 0) + len(ch.to_arrow())
    assert {topic: found.table(topic, ["log"]).num_rows for topic in found.topics} == {
        topic: n for topic, n in expected.items() if n
    }
    assert verify(dataset).wrong == {}
    assert verify(dataset).rows == sum(expected.values())


def test_values_are_those_of_the_logs(files: Path, dataset: Path) -> None:
    path = str(files / "robot0" / "log_0.ulg")
    table = Dataset(dataset).table("vehicle_attitude")
    (key,) = Dataset(dataset).keys_of(path)
    mine = table.filter([one == key for one in table["log"].to_pylist()])
    with logreel.open(path) as log:
        own = log["vehicle_attitude"]
        assert mine["time_ns"].to_pylist() == own.times.tolist()
        assert mine["q"].to_pylist() == own["q"].tolist()


def test_two_workers_and_a_killed_one_and_a_failing_disk_change_nothing(
    files: Path, dataset: Path, tmp_path: Path, faults: Faults
) -> None:
    faults.mark("killed", "log_3.bddf")
    faults.mark("killed", "log_13.bag", after=2)
    faults.mark("failing", "log_12.ulg", after=3)
    faults.mark("failing", "log_2.mcap")
    engine = LocalEngine(2)
    ingest(files, tmp_path / "fleet", engine=engine, target_bytes=400_000)
    engine.close()
    assert faults.left == []
    assert engine.died == 2
    assert content(tmp_path / "fleet") == content(dataset)


def test_a_log_that_always_kills_its_process_is_a_row_with_an_error(tmp_path: Path, faults: Faults) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("a.ulg", "b.ulg", "c.ulg"):
        (logs / name).write_bytes(firmware_log(1, later=False))
    site = faults.folder / "sitecustomize.py"
    site.write_text(site.read_text().replace("os.unlink(mark)", "pass"))
    faults.mark("killed", "b.ulg")
    done = ingest(logs, tmp_path / "fleet", workers=2)
    assert list(done.failed) == [str(logs / "b.ulg")]
    assert "its process died 3 times, with signal 9" in done.failed[str(logs / "b.ulg")]
    assert status(tmp_path / "fleet").again == 1
    (faults.folder.parent / "marks" / "killed-b.ulg").unlink()
    again = ingest(logs, tmp_path / "fleet", engine=Local())
    assert (again.changed, len(again.unchanged), again.failed) == ([str(logs / "b.ulg")], 2, {})


@pytest.mark.parametrize("ending", ["SIGINT", "SIGKILL"])
def test_an_interrupted_run_is_continued(
    files: Path, dataset: Path, tmp_path: Path, faults: Faults, ending: str
) -> None:
    child = started_ingest(files, tmp_path / "fleet", faults, "local")
    child.send_signal(getattr(signal, ending))
    _, err = child.communicate(timeout=60)
    if ending == "SIGINT":
        assert child.returncode == 130
        assert b"interrupted" in err
    assert not verify(tmp_path / "fleet").wrong
    assert 0 < len(Dataset(tmp_path / "fleet").rows) <= FILES
    ingest(files, tmp_path / "fleet", engine=Inline(), target_bytes=400_000)
    assert content(tmp_path / "fleet") == content(dataset)


def small_logs(folder: Path, *numbers: int) -> Path:
    folder.mkdir(exist_ok=True)
    for n in numbers:
        (folder / f"{n}.ulg").write_bytes(firmware_log(n, later=False))
    return folder


def test_a_run_that_died_between_files_and_manifest_leaves_no_torn_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = small_logs(tmp_path / "logs", 1, 2)
    ingest(logs, tmp_path / "whole", engine=Inline())

    def dies(self: object, folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("logreel.fleet.dataset.Manifest.write", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(logs, tmp_path / "fleet", engine=Inline())
    left = Dataset(tmp_path / "fleet")
    assert (left.rows, left.topics) == ([], [])
    assert len(left.orphans()) == 1
    assert status(left).unfinished >= 1
    ingest(logs, tmp_path / "fleet", engine=Inline())
    assert content(tmp_path / "fleet") == content(tmp_path / "whole")


def test_a_file_of_a_run_that_died_is_written_again_if_its_bytes_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = small_logs(tmp_path / "logs", 1)
    ingest(logs, tmp_path / "whole", engine=Inline())

    def dies(self: object, folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("logreel.fleet.dataset.Manifest.write", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(logs, tmp_path / "fleet", engine=Inline())
    (orphan,) = Dataset(tmp_path / "fleet").orphans()
    file = tmp_path / "fleet" / orphan
    # So may a power failure leave a file that nobody has synced.
    file.write_bytes(bytes(file.stat().st_size))
    ingest(logs, tmp_path / "fleet", engine=Inline())
    assert content(tmp_path / "fleet") == content(tmp_path / "whole")


def test_logs_that_are_complete_together_wait_for_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []

    def counted(folder: Path) -> None:
        synced.append(folder)
        sync_folder(folder)

    monkeypatch.setattr(ingesting, "sync_folder", counted)
    monkeypatch.setattr(ingesting, "BATCH_SECONDS", 1e9)
    done: list[str] = []
    ingest(
        small_logs(tmp_path / "logs", *range(8)),
        tmp_path / "fleet",
        engine=Local(),
        progress=lambda path, count, total: done.append(path),
    )
    topics = Counter(folder for folder in synced if folder.name.startswith("date="))
    assert len(done) == 8
    # The first log is published at once, the others together.
    assert set(topics.values()) == {2}
    assert verify(tmp_path / "fleet").wrong == {}


def test_files_of_logs_that_went_away_before_the_next_run_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = small_logs(tmp_path / "logs", 1)

    def dies(self: object, folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("logreel.fleet.dataset.Manifest.write", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(logs, tmp_path / "fleet", engine=Inline())
    (logs / "1.ulg").rename(logs / "2.ulg")
    ingest(logs, tmp_path / "fleet", engine=Inline())
    assert Dataset(tmp_path / "fleet").orphans() == []
    assert Dataset(tmp_path / "fleet").table("odd").num_rows == 20


def test_only_new_and_changed_logs_are_read_and_removed_ones_are_named(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "logs", 1, 2, 3)
    ingest(logs, tmp_path / "fleet", engine=Inline())
    before = content(tmp_path / "fleet")
    same = ingest(logs, tmp_path / "fleet", engine=Inline())
    assert (len(same.unchanged), same.parts) == (3, 0)
    assert content(tmp_path / "fleet") == before
    (logs / "1.ulg").unlink()
    (logs / "2.ulg").write_bytes(flight(1.0))
    small_logs(logs, 4)
    done = ingest(logs, tmp_path / "fleet", engine=Inline())
    assert [os.path.basename(one) for one in done.removed] == ["1.ulg"]
    assert [os.path.basename(one) for one in done.changed] == ["2.ulg"]
    assert [os.path.basename(one) for one in done.new] == ["4.ulg"]
    found = Dataset(tmp_path / "fleet")
    assert {
        os.path.basename(found.manifests[one].row.path) for one in found.table("odd")["log"].to_pylist()
    } == {
        "1.ulg",
        "3.ulg",
        "4.ulg",
    }
    assert found.orphans() == []
    assert verify(tmp_path / "fleet").wrong == {}


def test_all_files_of_a_topic_have_the_columns_of_all_firmwares(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    logs = small_logs(tmp_path / "logs", 1)
    ingest(logs, tmp_path / "fleet", engine=Inline())
    (logs / "2.ulg").write_bytes(firmware_log(2, later=True))
    done = ingest(logs, tmp_path / "fleet", engine=Inline())
    assert done.notes == ["odd: value: widened from float to double"]
    assert len(done.unchanged) == 1
    found = Dataset(tmp_path / "fleet")
    schemas = {str(pq.read_schema(tmp_path / "fleet" / part.path)) for part in found.parts["odd"]}
    assert len(schemas) == 1
    table = found.table("odd")
    assert table["value"].to_pylist() == [n / 2 for n in range(20)] * 2
    assert table["added"].to_pylist() == [None] * 20 + [7.0] * 20
    assert found.orphans() == []
    assert verify(tmp_path / "fleet").wrong == {}


@pytest.mark.parametrize("together", [True, False])
def test_a_narrower_version_that_comes_later_is_noted_too_and_rewrites_nothing(
    tmp_path: Path, together: bool
) -> None:
    logs, fleet = tmp_path / "logs", tmp_path / "fleet"
    logs.mkdir()
    (logs / "1.ulg").write_bytes(firmware_log(1, later=True))
    if not together:
        ingest(logs, fleet, engine=Inline())
    (logs / "2.ulg").write_bytes(firmware_log(2, later=False))
    done = ingest(logs, fleet, engine=Inline())
    assert done.notes == ["odd: value: widened from float to double"]
    assert (done.parts, report(fleet).notes) == (2 if together else 1, done.notes)
    (logs / "3.ulg").write_bytes(firmware_log(3, later=False))
    assert ingest(logs, fleet, engine=Inline()).notes == []
    assert Dataset(fleet).table("odd")["value"].to_pylist() == [n / 2 for n in range(20)] * 3


def test_a_run_that_died_while_older_files_got_new_columns_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logreel.fleet.dataset import Manifest

    logs = small_logs(tmp_path / "logs", 1)
    ingest(logs, tmp_path / "fleet", engine=Inline())
    (logs / "2.ulg").write_bytes(firmware_log(2, later=True))
    write = Manifest.write

    def dies(self: Manifest, folder: Path) -> None:
        if self.row.path.endswith("1.ulg"):
            raise KeyboardInterrupt
        write(self, folder)

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "write", dies)
        with pytest.raises(KeyboardInterrupt):
            ingest(logs, tmp_path / "fleet", engine=Inline())
    assert len(Dataset(tmp_path / "fleet").orphans()) == 1
    assert Dataset(tmp_path / "fleet").table("odd").num_rows == 40
    done = ingest(logs, tmp_path / "fleet", engine=Inline())
    assert len(done.unchanged) == 2
    found = Dataset(tmp_path / "fleet")
    assert found.orphans() == []
    assert len({part.columns for part in found.parts["odd"]}) == 1
    assert found.table("odd")["value"].to_pylist() == [n / 2 for n in range(20)] * 2
    assert verify(tmp_path / "fleet").wrong == {}


def test_values_that_no_type_holds_get_columns_of_their_own(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "logs", 1)
    out = Builder(start_us=1_000_000).flags()
    out.format("odd:uint64_t timestamp;char[8] mode;").subscribe("odd", 0)
    out.data(0, b"\x40\x42\x0f\0\0\0\0\0manual\0\0")
    (logs / "2.ulg").write_bytes(out.bytes())
    done = ingest(logs, tmp_path / "fleet", engine=Inline())
    assert done.notes == ["odd: mode__string: string cannot be combined with int32 of mode"]
    table = Dataset(tmp_path / "fleet").table("odd")
    assert table["mode__string"].to_pylist() == [None] * 20 + ["manual"]
    assert table["mode"].to_pylist() == [*range(20), None]


def test_logs_without_definitions_are_read_again_when_there_are_others(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "logs", 1)
    payload = struct.pack("<Ii", 5, -3)
    record = b"/dial\n*\nmy_msgs/Dial\n" + struct.pack("<III", 1_230_000_000, 0, len(payload)) + payload
    (logs / "old.bag").write_bytes(b"#ROSRECORD V1.1\n" + record * 3)
    ingest(logs, tmp_path / "fleet", engine=Inline())
    assert Dataset(tmp_path / "fleet").table("/dial")["data"].to_pylist() == [payload] * 3
    package = tmp_path / "share" / "my_msgs" / "msg"
    package.mkdir(parents=True)
    (package / "Dial.msg").write_text("uint32 ticks\nint32 turn\n")
    done = ingest(logs, tmp_path / "fleet", definitions=tmp_path / "share", engine=Inline())
    assert (done.changed, done.unchanged) == ([str(logs / "old.bag")], [str(logs / "1.ulg")])
    assert Dataset(tmp_path / "fleet").table("/dial")["turn"].to_pylist() == [-3] * 3
    done = ingest(logs, tmp_path / "fleet", definitions=tmp_path / "share", engine=Inline())
    assert done.changed == []


def test_types_of_topics_hold_for_the_logs_that_have_them(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "logs", 1)
    payload = struct.pack("<d", 2.5)
    record = b"/x\n*\n*\n" + struct.pack("<III", 1_230_000_000, 0, len(payload)) + payload
    (logs / "old.bag").write_bytes(b"#ROSRECORD V1.1\n" + record)
    done = ingest(logs, tmp_path / "fleet", definitions={"/x": "std_msgs/Float64"}, engine=Local())
    assert done.failed == {}
    assert Dataset(tmp_path / "fleet").table("/x")["data"].to_pylist() == [2.5]


def test_an_interval_of_each_log_is_an_option_of_the_dataset(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "logs", 1)
    ingest(logs, tmp_path / "fleet", start="+10us", engine=Inline())
    assert Dataset(tmp_path / "fleet").table("odd").num_rows == 10
    with pytest.raises(UsageError, match="other topics, fields, times"):
        ingest(logs, tmp_path / "fleet", engine=Inline())
    assert len(ingest(logs, tmp_path / "fleet", start=" +10us", engine=Inline()).unchanged) == 1


@pytest.mark.parametrize("topic", ["../../../etc/x", "/a b\n%2F", "..", "ä\u202e", "x" * 300, "a=b/date=1"])
def test_names_of_topics_stay_inside_of_the_dataset(tmp_path: Path, topic: str) -> None:
    path = tmp_path / "logs" / "a.mcap"
    path.parent.mkdir()
    with logreel.create(path) as out:
        ch = out.add_channel(topic, logreel.Schema("std_msgs/Int64", "ros1msg", "int64 data\n"))
        out.write(ch, 10**18, {"data": 7})
    ingest(tmp_path / "logs", tmp_path / "fleet", engine=Inline())
    found = Dataset(tmp_path / "fleet")
    assert found.topics == [topic]
    assert found.table(topic)["data"].to_pylist() == [7]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["fleet", "logs"]
    parts = list((tmp_path / "fleet").rglob("*.parquet"))
    assert len(parts) == 1
    assert len(parts[0].relative_to(tmp_path / "fleet").parts) == 3


def test_a_manifest_cannot_name_files_outside_of_the_dataset(tmp_path: Path) -> None:
    ingest(small_logs(tmp_path / "logs", 1), tmp_path / "fleet", engine=Inline())
    manifest = next((tmp_path / "fleet" / "_catalog" / "logs").glob("*.json"))
    text = manifest.read_text()
    at = text.index('"topic=')
    manifest.write_text(text[:at] + '"topic=a/../../x' + text[text.index(".parquet", at) :])
    assert list(verify(tmp_path / "fleet").wrong) == [f"_catalog/logs/{manifest.name}"]
    with pytest.raises(LogError, match="no part of a dataset"):
        _ = Dataset(tmp_path / "fleet").manifests


def test_another_process_that_writes_is_an_error(tmp_path: Path) -> None:
    from logreel.fleet.dataset import locked

    logs = small_logs(tmp_path / "logs", 1)
    ingest(logs, tmp_path / "fleet", engine=Inline())
    with locked(Dataset(tmp_path / "fleet")), pytest.raises(LogError, match="another process"):
        ingest(logs, tmp_path / "fleet", engine=Inline())


def test_wrong_targets_and_options_are_refused(tmp_path: Path) -> None:
    logs = small_logs(tmp_path / "logs", 1)
    with pytest.raises(LogError, match="no dataset"):
        ingest(logs, logs, engine=Inline())
    with pytest.raises(LogError, match="no such folder"):
        ingest(logs, tmp_path / "a" / "b", engine=Inline())
    with pytest.raises(UsageError, match="no engine 'spark'"):
        ingest(logs, tmp_path / "fleet", engine="spark")
    ingest(logs, tmp_path / "fleet", engine=Inline())
    with pytest.raises(UsageError, match="other topics"):
        ingest(logs, tmp_path / "fleet", topics="odd", engine=Inline())
    with pytest.raises(UsageError, match="no dataset of logreel"):
        Dataset(logs)


def test_verify_finds_changed_missing_and_foreign_files(small_dataset: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(small_dataset, copy)
    assert verify(copy).wrong == {}
    first, second, third, *_ = sorted(copy.rglob("*.parquet"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    second.write_bytes(second.read_bytes()[:-1])
    third.rename(third.with_name("part-foreign.parquet"))
    found = verify(copy)
    names = [path.relative_to(copy).as_posix() for path in (first, second, third)]
    assert set(found.wrong) == set(names)
    assert "other content" in found.wrong[names[0]]
    assert "bytes instead of" in found.wrong[names[1]]
    assert found.orphans == [third.with_name("part-foreign.parquet").relative_to(copy).as_posix()]


def stamped(path: Path, stamps: list[int]) -> Path:
    """Write a bag with stamps in a field, in a list, and in a list of structs."""
    path.parent.mkdir(exist_ok=True)
    text = (
        "time stamp\ntime[] more\nmy/Item[] items\nduration age\n"
        + "=" * 80
        + "\nMSG: my/Item\ntime at\nint32 n\n"
    )
    with logreel.create(path) as out:
        ch = out.add_channel("/s", logreel.Schema("my/Stamped", "ros1msg", text))
        for n, ns in enumerate(stamps):
            value = {"stamp": ns, "more": [ns, ns + 1], "items": [{"at": ns, "n": n}], "age": 7}
            out.write(ch, 1_700_000_000_123_456_789 + n, value)
    return path


def test_timestamps_are_those_that_spark_reads_and_no_nanosecond_is_lost(tmp_path: Path) -> None:
    """Spark, Delta and Iceberg know timestamps in µs only; Spark 4.3 refuses files with ns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stamps = [1_700_000_000_123_456_789, 1_999, 0]
    ingest(stamped(tmp_path / "logs" / "a.bag", stamps), tmp_path / "fleet", engine=Inline())
    found = Dataset(tmp_path / "fleet")
    table = found.table("/s")
    assert table["stamp_ns"].to_pylist() == stamps
    assert table["stamp"].cast(pa.int64()).to_pylist() == [ns // 1000 for ns in stamps]
    assert table["more"].to_pylist() == [[ns, ns + 1] for ns in stamps]
    assert [[item["at"] for item in row] for row in table["items"].to_pylist()] == [[ns] for ns in stamps]
    assert table["time_ns"].to_pylist() == [1_700_000_000_123_456_789 + n for n in range(3)]
    assert table["time"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_456] * 3
    (part,) = found.parts["/s"]
    file = pq.ParquetFile(tmp_path / "fleet" / part.path)
    kinds = {file.schema.column(n).logical_type.to_json() for n in range(len(file.schema))}
    assert not any("nanoseconds" in kind for kind in kinds)
    assert any("microseconds" in kind for kind in kinds)


def test_timestamps_in_ns_are_an_option_of_the_dataset(tmp_path: Path) -> None:
    import pyarrow as pa

    logs = stamped(tmp_path / "logs" / "a.bag", [1_999])
    ingest(logs, tmp_path / "fleet", engine=Inline(), timestamps="ns")
    table = Dataset(tmp_path / "fleet").table("/s")
    assert "stamp_ns" not in table.column_names
    assert {table.schema.field(name).type for name in ("time", "stamp")} == {pa.timestamp("ns")}
    assert table["stamp"].cast(pa.int64()).to_pylist() == [1_999]
    with pytest.raises(UsageError, match="or timestamps: use those"):
        ingest(logs, tmp_path / "fleet", engine=Inline())
    with pytest.raises(UsageError, match="timestamps are in us or ns, not 'ms'"):
        ingest(logs, tmp_path / "other", engine=Inline(), timestamps="ms")
