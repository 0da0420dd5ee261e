"""Output and options of the verbs that read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import logreel
from logreel.cli.help import VERBS
from support.formats import builtin_formats
from support.harness.cli_runner import Run, Spawn
from support.samples.rosbag.builder import drive


def test_info_shows_the_log(run: Run, logs: Path) -> None:
    done = run("info", logs / "flight.ulg")
    assert (done.code, done.err) == (0, "")
    for word in (
        "PX4 ULog, version 1",
        "after boot",
        "2025-05-17T",
        "problems  none",
        "sensor_accel[1]",
        "~text",
    ):
        assert word in done.out
    assert "vehicle_command_ack" in done.out


def test_info_prints_each_of_several_files(run: Run, logs: Path) -> None:
    done = run("info", logs / "tiny.ulg", logs / "flight.ulg", "--json")
    found = [json.loads(line)["path"] for line in done.out.splitlines()]
    assert found == [str(logs / "tiny.ulg"), str(logs / "flight.ulg")]
    assert run("info", logs / "tiny.ulg", "--json").json["messages"] == 25
    done = run("info", logs / "photo.jpg", logs / "tiny.ulg", logs / "nothing")
    assert done.code == 3
    assert "tiny.ulg" in done.out
    assert len(done.err.splitlines()) == 2


def test_info_of_a_damaged_log_gives_exit_code_0(run: Run, logs: Path) -> None:
    done = run("info", logs / "damaged.ulg")
    assert (done.code, done.err) == (0, "")
    assert "1 problem, " in done.out


def test_cat_prints_text(run: Run, logs: Path) -> None:
    done = run("cat", logs / "tiny.ulg", "-t", "pair", "-n", "1")
    assert done.out == "1.000000  pair  timestamp=1000000 flag=1 cells=[{volt=3.5 id=1}, {volt=3.625 id=2}]\n"
    done = run("cat", logs / "tiny.ulg", "-t", "note")
    assert done.out == '1.080000  note  timestamp=1080000 text="hi" on=true value=3.141592653589793\n'


def test_cat_chooses_topics(run: Run, logs: Path) -> None:
    def topics(*args: str) -> set[str]:
        lines = run("cat", logs / "tiny.ulg", "--format", "ndjson", *args).out.splitlines()
        return {json.loads(line)["topic"] for line in lines}

    assert topics() == {"pair", "rate", "rate[1]", "note"}
    assert topics("-t", "rate*") == {"rate", "rate[1]"}
    assert topics("--topic", "rate[1]", "-t", "~text") == {"rate[1]", "~text"}


def test_cat_takes_an_interval(run: Run, logs: Path) -> None:
    def times(*args: str) -> list[int]:
        lines = run("cat", logs / "tiny.ulg", "--format", "ndjson", "-t", "pair", *args).out.splitlines()
        return [json.loads(line)["time_ns"] // 10**6 for line in lines]

    assert times() == [1000 + 10 * i for i in range(8)]
    assert times("-S", "+20ms", "-E", "+40ms") == [1020, 1030]
    assert times("--start", "1060000000ns") == [1060, 1070]
    # The log ends with a text at 1080.1 ms.
    assert times("-S", "-30ms") == [1060, 1070]
    assert times("--end", "log:1.01") == times("--end", "0.01") == [1000]
    assert times("-n", "0") == []
    assert times("--count", "2") == [1000, 1010]


def test_cat_prints_utc_times(run: Run, logs: Path) -> None:
    done = run("cat", logs / "flight.ulg", "-n", "1", "--utc")
    assert done.out.startswith("2025-05-17T08:42:")
    done = run("cat", logs / "tiny.ulg", "--utc")
    assert done.code == 2
    assert "how its clock relates to UTC" in done.err


def test_cat_prints_csv(run: Run, logs: Path) -> None:
    done = run("cat", logs / "tiny.ulg", "-t", "rate", "--format", "csv", "-n", "2", "-S", "+10ms")
    assert done.out == (
        "time_ns,timestamp,xyz[0],xyz[1],xyz[2]\n1010005000,1010005,1,-1,0\n1020005000,1020005,2,-2,0\n"
    )
    done = run("cat", logs / "tiny.ulg", "--format", "csv")
    assert done.code == 2
    assert "one channel" in done.err


def test_cat_prints_json(run: Run, logs: Path) -> None:
    found = run("cat", logs / "tiny.ulg", "--json", "-n", "3").json
    assert list(found) == ["path", "messages", "skipped", "problems"]
    assert [list(one) for one in found["messages"]] == [["topic", "time_ns", "data"]] * 3
    assert run("cat", logs / "tiny.ulg", "--json", "-n", "0").json["messages"] == []


def test_schema_prints_definition_and_fields(run: Run, logs: Path) -> None:
    done = run("schema", logs / "tiny.ulg", "pair")
    assert "| pair:uint64_t timestamp;uint8_t flag;" in done.out
    assert "cells[2].volt" in done.out
    assert "rate" not in done.out
    assert "~dropout" in run("schema", logs / "tiny.ulg").out
    (one,) = run("schema", logs / "tiny.ulg", "note", "--json").json["schemas"]
    assert list(one) == ["topic", "name", "encoding", "text", "fields", "trouble", "metadata"]
    assert one["fields"][0] == {"path": "timestamp", "type": "uint64", "unit": ""}
    assert run("schema", logs / "tiny.ulg", "nothing").code == 2


def test_params_prints_values_changes_and_defaults(run: Run, logs: Path) -> None:
    assert run("params", logs / "tiny.ulg").out.splitlines() == [
        "parameter  initial  final  default     changes",
        "GAIN           0.5    0.5  0.25",
        "MODE             3      4  1 (system)        1",
    ]
    assert run("params", logs / "tiny.ulg", "--changed").out.splitlines()[1:] == [
        "MODE             3      4  1 (system)        1  4 at 1.040007",
    ]
    assert run("params", logs / "tiny.ulg", "G*").out.splitlines()[1:] == ["GAIN           0.5    0.5  0.25"]
    assert len(run("params", logs / "tiny.ulg", "--defaults").out.splitlines()) == 3
    found = run("params", logs / "tiny.ulg", "--json").json
    assert found["parameters"][1] == {
        "name": "MODE", "type": "int32_t", "value": 3, "final": 4,
        "changes": [{"time_ns": 1_040_007_000, "value": 4}], "change_count": 1, "defaults": {"system": 1},
    }  # fmt: skip
    assert "at 2025-" in run("params", logs / "flight.ulg", "--changed", "--utc").out
    assert "no such parameters" in run("params", logs / "flight.ulg", "SYS*", "--changed").err


def test_words_of_params_are_logs_if_they_exist_or_end_like_logs(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(logs)
    one = run("params", "tiny.ulg", "GAIN", "--json").json
    assert [p["name"] for p in one["parameters"]] == ["GAIN"]
    assert run("params", "GAIN", "re:N.*", "tiny.ulg").code == 2
    assert run("params", "GAIN", "re:M.*", "tiny.ulg").out == run("params", "tiny.ulg").out
    # A pattern that also matches files is one of parameters, unless it ends like a log.
    assert run("params", "tiny.ulg", "*").out == run("params", "tiny.ulg").out
    assert run("params", "t*y.ulg", "*").out == run("params", "tiny.ulg").out
    Path("MODE").touch()
    assert run("params", "tiny.ulg", "re:MODE").out.splitlines()[1][:4] == "MODE"
    for words, text in (
        (("tiny.ulg", "GAIM"), "no parameter 'GAIM'; nearest: GAIN"),
        (("tiny.ulg", "absent.ulg"), "absent.ulg: no such file"),
        (("absent", "*"), "absent: no such file"),
        (("tiny.ulg", "MODE"), "MODE: "),
    ):
        done = run("params", *words)
        assert done.code in (1, 2, 3, 5), words
        assert text in done.err
    both = run("params", "tiny.ulg", "flight.ulg", "re:GAIN|MPC_XY.*", "--json")
    tiny, flight = ([p["name"] for p in json.loads(line)["parameters"]] for line in both.out.splitlines())
    assert (tiny, flight[0]) == (["GAIN"], "MPC_XY_CRUISE")


def test_text_prints_lines_by_level_and_interval(run: Run, logs: Path) -> None:
    done = run("text", logs / "tiny.ulg")
    assert done.out.splitlines() == [
        "1.020009  info       running",
        "1.020009  warning    [tag 7] check the belt",
        "1.080100  error",
    ]
    assert "running" not in run("text", logs / "tiny.ulg", "--level", "warning").out
    assert run("text", logs / "tiny.ulg", "-S", "+50ms").out.count("\n") == 1
    assert run("text", logs / "tiny.ulg", "-E", "+50ms").out.count("\n") == 2
    assert run("text", logs / "flight.ulg", "--utc").out.startswith("2025-")
    found = run("text", logs / "tiny.ulg", "--json", "--level", "4").json["lines"]
    assert found[0] == {
        "time_ns": 1_020_009_000, "level": 4, "text": "check the belt", "source": "tag 7", "kind": "text",
        "repeated": False,
    }  # fmt: skip
    assert run("text", logs / "tiny.ulg", "--level", "loud").code == 2


def test_text_prints_only_the_first_lines(run: Run, logs: Path) -> None:
    every = run("text", logs / "flight.ulg").out.splitlines()
    assert len(every) > 3
    for n in (0, 1, 3, len(every) + 1):
        assert run("text", logs / "flight.ulg", "-n", str(n)).out.splitlines() == every[:n]
        assert len(run("text", logs / "flight.ulg", "--count", str(n), "--json").json["lines"]) == min(
            n, len(every)
        )
    # Lines are counted after the choice by level.
    first = run("text", logs / "tiny.ulg", "--level", "warning", "-n", "1").out
    assert "check the belt" in first
    assert first.count("\n") == 1
    assert run("text", logs / "tiny.ulg", "-n", "-1").code == 2


def test_params_of_a_converted_log_are_those_of_its_source(run: Run, logs: Path, tmp_path: Path) -> None:
    logreel.convert(logs / "flight.ulg", tmp_path / "x.mcap")
    for words in (["M*"], ["--format", "params"], ["--format", "yaml", "--final"], ["--format", "csv"]):
        expected = run("params", logs / "flight.ulg", *words).out
        assert run("params", tmp_path / "x.mcap", *words).out == expected
        assert len(expected.splitlines()) > 1


def test_params_says_so_if_a_log_has_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.bag").write_bytes(drive(1.0))
    for words in ([], ["X*"], ["--changed"], ["--format", "csv"]):
        done = run("params", tmp_path / "a.bag", *words)
        assert (done.code, done.out, done.err) == (0, "", "logreel: no parameters in this log\n"), words
    assert run("params", tmp_path / "a.bag", "--json").json["parameters"] == []


@pytest.mark.parametrize("out", ["x.mcap", "x.ulg", "x.csv/", "x.ndjson"])
def test_convert_leaves_out_excluded_channels(run: Run, logs: Path, tmp_path: Path, out: str) -> None:
    source = logs / "flight.ulg"
    place = f"{tmp_path}/{out}"
    assert run("convert", source, place, "-x", "sensor_*", "-x", "re:vehicle_(attitude|status)").code == 0
    with logreel.open(source) as log:
        gone = {name for name in log.channels if name.startswith("sensor_")} | {
            "vehicle_attitude",
            "vehicle_status",
        }
        kept = {ch.topic for ch in log.match(None) if len(ch)} - gone
    assert gone & set(logreel.open(source))
    if out == "x.csv/":
        found = {path.stem for path in Path(place).glob("*.csv")}
    elif out == "x.ndjson":
        found = {json.loads(line)["topic"] for line in Path(place).read_text().splitlines()}
    else:
        with logreel.open(place) as log:
            found = {ch.topic for ch in log.match(None) if len(ch)}
    assert not any(name.removeprefix("/") in gone for name in found)
    assert kept <= {name.removeprefix("/") for name in found}
    assert run("convert", source, f"{tmp_path}/y.mcap", "-x", "nothing").code == 2


def test_attachments_lists_and_extracts_files(run: Run, logs: Path, tmp_path: Path) -> None:
    done = run("attachments", logs / "tiny.ulg")
    assert "console.txt" in done.out
    assert "blob.bin" in done.out
    assert run("attachments", logs / "tiny.ulg", "--name", "console.txt").out.startswith("first part")
    out = tmp_path / "out"
    done = run("attachments", logs / "tiny.ulg", "-o", out, "--name", "blob.bin")
    assert done.code == 0
    assert os.listdir(out) == ["blob.bin"]
    assert (out / "blob.bin").read_bytes() == b"\x00\x01\xfe\xff"
    done = run("attachments", logs / "tiny.ulg", "-o", out)
    assert done.code == 1
    assert "exists already" in done.err
    found = run("attachments", logs / "tiny.ulg", "--output", out, "--force", "--json").json
    assert {one["file"] for one in found["attachments"]} == {str(out / "console.txt"), str(out / "blob.bin")}
    assert run("attachments", logs / "tiny.ulg", "--name", "nothing").code == 2


def test_an_attachment_is_printed_byte_for_byte(spawn: Spawn, logs: Path) -> None:
    done = spawn("-m", "logreel", "attachments", logs / "tiny.ulg", "--name", "blob.bin")
    assert done.stdout == b"\x00\x01\xfe\xff"


def test_stats_prints_rates_and_field_values(run: Run, logs: Path) -> None:
    done = run("stats", logs / "tiny.ulg")
    # Columns in which no channel has anything are not shown.
    assert " ".join(done.out.splitlines()[0].split()) == "channel messages rate period jitter longest size"
    assert done.out.splitlines()[1].split()[:3] == ["pair", "8", "100"]
    done = run("stats", logs / "tiny.ulg", "--fields", "-t", "pair")
    assert "cells[0].volt" in done.out
    assert "rate " not in done.out.split("\n", 1)[1]
    found = run("stats", logs / "tiny.ulg", "--json").json["channels"]
    assert (found[0]["topic"], found[0]["fields"]) == ("pair", None)
    assert run("stats", logs / "tiny.ulg", "--json", "--fields").json["channels"][0]["fields"]


def test_index_writes_a_file_that_changes_no_output(run: Run, logs: Path) -> None:
    before = run("info", logs / "flight.ulg", "--json").json
    done = run("index", logs / "flight.ulg")
    assert done.code == 0
    assert "wrote" in done.err
    written = Path(run("index", logs / "flight.ulg", "--json").json["index"])
    assert written.parent == logs
    assert run("info", logs / "flight.ulg", "--json").json == before


def test_formats_lists_formats_and_outputs(run: Run) -> None:
    done = run("formats")
    assert "PX4 ULog" in done.out
    assert ".parquet/" in done.out
    found = run("formats", "--json").json
    # Packages with further formats may be installed.
    assert {one["name"] for one in found["formats"]} >= set(builtin_formats())
    assert ".ndjson" in {one["suffix"] for one in found["outputs"]}


def test_convert_writes_tables_and_keeps_existing_ones(run: Run, logs: Path, tmp_path: Path) -> None:
    out = f"{tmp_path}/x.parquet/"
    done = run("convert", logs / "flight.ulg", out)
    assert (done.code, done.out) == (0, "")
    assert "wrote" in done.err
    assert (tmp_path / "x.parquet" / "sensor_accel-1.parquet").exists()
    assert run("convert", logs / "flight.ulg", out).code == 1
    found = run("convert", logs / "flight.ulg", out, "--force", "--json").json
    assert list(found) == ["path", "output", "channels", "shared", "skipped", "notes", "ledger", "problems"]
    assert found["shared"] is None
    one = tmp_path / "one.parquet"
    assert run("convert", logs / "tiny.ulg", one, "-t", "pair", "-S", "+20ms", "-E", "+40ms").code == 0
    assert pq.ParquetFile(one).metadata.num_rows == 2
    done = run("convert", logs / "flight.ulg", tmp_path / "u.csv", "-t", "sensor_gps", "--utc")
    assert (tmp_path / "u.csv").read_text().splitlines()[1].startswith("2025-05-17 08:42")
    assert run("convert", logs / "flight.ulg", tmp_path / "x.doc").code == 2
    assert run("convert", logs / "flight.ulg", tmp_path / "y.csv").code == 2


def test_convert_prints_all_reasons_if_nothing_can_be_written(run: Run, logs: Path, tmp_path: Path) -> None:
    done = run("convert", logs / "tiny.ulg", tmp_path / "x.bag", "--raw")
    *reasons, last = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert "nothing is written, because a bag can hold none of the" in last
    assert {text.split()[2] for text in reasons if text.startswith("logreel: channel ")} == {
        repr(topic) for topic in logreel.open(logs / "tiny.ulg").channels
    }
    assert not (tmp_path / "x.bag").exists()


def test_demo_runs_and_runs_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        done = run("demo")
        assert done.code == 0, done.err
        commands = [line for line in done.out.splitlines() if line.startswith("$ ")]
        assert [line.split()[2] for line in commands[:5]] == ["info", "cat", "text", "params", "health"]
    assert logreel.open(tmp_path / "logreel-demo" / "flight.mcap").message_count
    assert run("demo", "--dir", "else where").code == 0
    assert (tmp_path / "else where" / "flight.ulg").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_the_shell(
    run: Run, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "_LOGREEL_COMPLETE" in run("completion", shell).out
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert run("completion").out == run("completion", shell).out
    monkeypatch.setenv("SHELL", "")
    assert run("completion").code == 2


def test_version_and_help_are_printed(run: Run) -> None:
    assert run("--version").out == f"logreel {logreel.__version__}\n"
    assert run("--version", "info").out == f"logreel {logreel.__version__}\n"
    done = run("--help")
    assert done.code == 0
    assert run() == done
    for verb in (verb for verbs in VERBS.values() for verb in verbs):
        assert verb in done.out
        one = run(verb, "-h")
        assert (one.code, one.err) == (0, "")
        assert f"logreel {verb}" in one.out


def test_stats_shows_rare_columns_only_with_values(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path) as writer:
        channel = writer.add_channel("/a", logreel.Schema("std_msgs/Int8", "ros1msg", "int8 data\n"))
        for time in (10**9, 3 * 10**9, 2 * 10**9, 2 * 10**9):
            writer.write(channel, time, {"data": 1})
    head = run("stats", path).out.splitlines()[0].split()
    assert " ".join(head) == "channel messages rate period jitter longest out of order duplicates size"
