"""``convert -`` into tables and logs: they are written while the pipe is open, and equal those of the file."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import logreel
from cli.test_pipes_read import SUFFIXES, piped
from support.builders.contents import SAMPLES
from support.harness.cli_runner import Run, Spawn

READERS = {".parquet": pq.read_table, ".arrow": lambda path: pyarrow.ipc.open_file(path).read_all()}


def wait_until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 100
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def tables(folder: Path) -> dict[str, object]:
    """Return the rows of the files of a folder, CSV as bytes, and its manifest without the name of the log."""
    found: dict[str, object] = {}
    for path in folder.iterdir():
        if path.name == "manifest.json":
            manifest = json.loads(path.read_text())
            del manifest["source"]["name"]
            # Messages that cannot be decoded are found in the order in which channels are read.
            manifest["problems"].sort(key=lambda one: (one["offset"], one["text"]))
            found[path.name] = manifest
        elif path.suffix == ".csv":
            found[path.name] = path.read_bytes()
        else:
            table: pa.Table = READERS[path.suffix](path)
            # Columns are named by their messages; the metadata also name the file.
            found[path.name] = (table.schema.names, table.schema.types, repr(table.to_pylist()))
    return found


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tables_appear_while_the_pipe_is_open_and_equal_those_of_the_file(
    suffix: str, run: Run, tmp_path: Path
) -> None:
    data = SAMPLES[suffix]()
    (tmp_path / f"x{suffix}").write_bytes(data)
    due = run("convert", tmp_path / f"x{suffix}", f"{tmp_path}/due.csv/")
    active = tmp_path / "x.csv.active"
    with piped("convert", "-", f"{tmp_path}/x.csv/") as process:
        send(process, data[: len(data) * 4 // 5])
        wait_until(lambda: any(one.stat().st_size > 200 for one in active.glob("*.csv")))
        assert not (tmp_path / "x.csv").exists()
        _, err = process.communicate(data[len(data) * 4 // 5 :], timeout=120)
    assert (process.returncode, due.code) == (0, 0), err
    assert tables(tmp_path / "x.csv") == tables(tmp_path / "due.csv")
    assert err.decode() == due.err.replace("due.csv", "x.csv")
    assert not active.exists()


@pytest.mark.parametrize("form", [".parquet", ".arrow"])
@pytest.mark.parametrize("suffix", [".mcap", ".ulg"])
def test_tables_with_types_from_a_pipe_hold_the_rows_of_the_file(
    form: str, suffix: str, run: Run, tmp_path: Path
) -> None:
    data = SAMPLES[suffix]()
    (tmp_path / f"x{suffix}").write_bytes(data)
    run("convert", tmp_path / f"x{suffix}", f"{tmp_path}/due{form}/")
    with piped("convert", "-", f"{tmp_path}/x{form}/") as process:
        for at in range(0, len(data), len(data) // 7):
            send(process, data[at : at + len(data) // 7])
            time.sleep(0.05)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    found = tables(tmp_path / f"x{form}")
    assert found == tables(tmp_path / f"due{form}")
    assert len(found) > 3


def test_one_channel_goes_to_stdout_while_the_pipe_is_open(spawn: Spawn, tmp_path: Path) -> None:
    data = SAMPLES[".mcap"]()
    (tmp_path / "x.mcap").write_bytes(data)
    args = ["-t", "/imu", "-o", "-", "--format", "csv"]
    due = spawn("-m", "logreel", "convert", tmp_path / "x.mcap", *args)
    assert due.returncode == 0, due.stderr
    with piped("convert", "-", *args) as process:
        send(process, data[: len(data) * 4 // 5])
        assert process.stdout is not None
        head, row = process.stdout.readline(), process.stdout.readline()
        out, err = process.communicate(data[len(data) * 4 // 5 :], timeout=120)
    assert head + row + out == due.stdout
    assert (process.returncode, err) == (0, due.stderr)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", ["cut", "zeros"])
def test_a_cut_or_damaged_pipe_gives_the_tables_of_the_same_file(
    suffix: str, damage: str, run: Run, spawn: Spawn, tmp_path: Path
) -> None:
    whole = bytearray(SAMPLES[suffix]())
    middle = len(whole) * 2 // 3
    if damage == "zeros":
        whole[middle : middle + 300] = bytes(300)
    data = bytes(whole[:-100] if damage == "zeros" else whole[:middle])
    (tmp_path / f"x{suffix}").write_bytes(data)
    due = run("convert", tmp_path / f"x{suffix}", f"{tmp_path}/due.csv/")
    done = spawn("-m", "logreel", "convert", "-", f"{tmp_path}/x.csv/", input=data)
    assert due.code == done.returncode == 3, (due.err, done.stderr)
    assert tables(tmp_path / "x.csv") == tables(tmp_path / "due.csv")


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (["-t", "/imu*"], "x.csv/"),
        (["-t", "/gps/fix.latitude", "-t", "/gps/fix:longitude"], "x.csv/"),
        (["-x", "/imu*"], "x.csv/"),
        (["-t", "/nothing"], "x.csv/"),
        (["-t", "/gps/fix.nothing"], "x.csv/"),
        (["-t", "/gps/fix"], "x.csv"),
        (["-t", "/gps/fix", "-t", "/imu*"], "x.csv"),
        ([], "x.csv"),
        (["--nested"], "x.csv/"),
        (["-n", "5"], "x.csv/"),
        (["--align", "previous", "--rate", "10Hz"], "x.csv"),
    ],
    ids=str,
)
def test_options_and_faults_are_those_of_a_file(
    options: list[str], out: str, run: Run, spawn: Spawn, tmp_path: Path
) -> None:
    data = SAMPLES[".bag"]()
    (tmp_path / "x.bag").write_bytes(data)
    folders = [tmp_path / name for name in ("due", "found")]
    for folder in folders:
        folder.mkdir()
    due = run("convert", tmp_path / "x.bag", f"{folders[0]}/{out}", *options)
    done = spawn("-m", "logreel", "convert", "-", f"{folders[1]}/{out}", *options, input=data)
    text = done.stderr.decode().replace("<stdin>", str(tmp_path / "x.bag")).replace("/found/", "/due/")
    assert (done.returncode, text) == (due.code, due.err)
    names = [[one.name for one in folder.iterdir() if one.suffix != ".active"] for folder in folders]
    assert names[0] == names[1]
    for name in names[0]:
        one, other = (folder / name for folder in folders)
        if one.is_dir():
            assert tables(one) == tables(other)
        else:
            assert one.read_bytes() == other.read_bytes()


def test_folders_are_replaced_only_with_force_and_only_those_of_logreel(spawn: Spawn, tmp_path: Path) -> None:
    data, out = SAMPLES[".bag"](), tmp_path / "x.csv"
    call = ("-m", "logreel", "convert", "-", f"{out}/")
    for folder in (out, tmp_path / "x.csv.active"):
        folder.mkdir()
        (folder / "mine").write_text("mine")
        assert spawn(*call, input=data).returncode == 1
        assert spawn(*call, "--force", input=data).returncode == 1
        assert [one.name for one in folder.iterdir()] == ["mine"]
        (folder / "mine").unlink()
        folder.rmdir()
    assert spawn(*call, input=data).returncode == 0
    assert spawn(*call, input=data).returncode == 1
    assert spawn(*call, "--force", input=data).returncode == 0
    assert [one.name for one in tmp_path.iterdir()] == ["x.csv"]


# -- logs


@pytest.mark.parametrize("damage", ["none", "cut", "zeros"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_log_from_a_pipe_has_the_bytes_of_the_converted_file(
    suffix: str, damage: str, run: Run, tmp_path: Path
) -> None:
    whole = bytearray(SAMPLES[suffix]())
    middle = len(whole) * 2 // 3
    if damage == "zeros":
        whole[middle : middle + 300] = bytes(300)
    data = bytes(whole[:middle] if damage == "cut" else whole)
    (tmp_path / f"x{suffix}").write_bytes(data)
    due = run("convert", tmp_path / f"x{suffix}", tmp_path / f"due{suffix}")
    active = tmp_path / f"y{suffix}.active"
    with piped("convert", "-", str(tmp_path / f"y{suffix}")) as process:
        send(process, data[: len(data) * 4 // 5])
        if suffix not in (".bag", ".db3", ".mcap"):
            # These are composed of messages, or read, when all is there.
            wait_until(lambda: active.exists() and active.stat().st_size > len(data) // 4)
        _, err = process.communicate(data[len(data) * 4 // 5 :], timeout=120)
    assert process.returncode == due.code, (err, due.err)
    # Zeros in a picture, or in another payload without a checksum, are not noticed.
    unnoticed = damage == "none" or (damage == "zeros" and suffix in (".vel", ".db3"))
    assert process.returncode == (0 if unnoticed else 3)
    found = (tmp_path / f"y{suffix}").read_bytes()
    assert found == (tmp_path / f"due{suffix}").read_bytes() or suffix == ".mcap"
    assert len(list(logreel.open(found).messages())) == len(
        list(logreel.open(tmp_path / f"due{suffix}").messages())
    )
    assert not active.exists()


def test_a_copied_log_goes_to_stdout_while_the_pipe_is_open(spawn: Spawn, tmp_path: Path) -> None:
    data = SAMPLES[".ulg"]()
    args = ["-o", "-", "--format", "ulog"]
    with piped("convert", "-", *args) as process:
        send(process, data[: len(data) * 4 // 5])
        assert process.stdout is not None
        head = process.stdout.read(len(data) // 4)
        out, err = process.communicate(data[len(data) * 4 // 5 :], timeout=120)
    assert head + out == data
    assert process.returncode == 0, err
    cut = spawn("-m", "logreel", "convert", "-", *args, input=data[: len(data) // 2])
    (tmp_path / "x.ulg").write_bytes(data[: len(data) // 2])
    due = spawn("-m", "logreel", "convert", tmp_path / "x.ulg", *args)
    assert (cut.returncode, due.returncode) == (3, 3)
    assert cut.stdout == due.stdout
