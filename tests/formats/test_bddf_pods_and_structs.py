"""POD and struct series of BDDF files: samples in data blocks, their times, and joined members."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import logreel
from logreel.errors import DamagedError
from support.harness.cli_runner import Run
from support.samples.bddf.builder import PODS, T0, Builder, hash_of


@pytest.mark.parametrize("kind", PODS)
@pytest.mark.parametrize("dimension", [(), (1,), (3,), (2, 3), (2, 1, 4)])
def test_every_pod_type_and_dimension_is_decoded(kind: str, dimension: Sequence[int]) -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, kind, dimension, "m/s2")
    values = np.arange(2 * 3 * int(np.prod(dimension))).astype(kind)
    half = len(values) // 2
    out.data(series, T0, values[:half].tobytes()).data(series, T0 + 10, values[half:].tobytes())
    ch = logreel.open(out.bytes())["v"]
    assert np.array_equal(ch["value"], values.reshape(-1, *dimension))
    assert ch["value"].dtype == np.dtype(kind)
    table = ch.to_arrow()
    assert table.column_names == ["time", "sample", "value"]
    assert table["sample"].to_pylist() == [0, 1, 2, 0, 1, 2]
    assert table.schema.field("value").metadata == {b"unit": b"m/s2"}
    lists = ch.to_arrow(explode=False)
    assert lists["sample"].to_pylist() == [[0, 1, 2]] * 2
    (first, _) = ch.log.messages(["v"])
    assert first.decode()["records"][2]["value"] == values.reshape(-1, *dimension)[2].tolist()


@pytest.mark.parametrize("last", [2, 3, 0])
def test_decode_all_equals_decoding_in_batches(last: int) -> None:
    out = Builder()
    series, other = out.pods({"varname": "v"}, "int16", (2,)), out.pods({"varname": "w"}, "uint8")
    counts = [3] * 40 + [last]
    for i, count in enumerate(counts):
        out.values(series, T0 + i * 10**8, "int16", range(i, i + 2 * count))
        out.values(other, T0 + i, "uint8", [i])
    ch = logreel.open(out.bytes())["v"]
    values = [[v, v + 1] for i, count in enumerate(counts) for v in range(i, i + 2 * count, 2)]
    times = [T0 + i * 10**8 for i, count in enumerate(counts) for _ in range(count)]
    whole = ch.to_arrow()
    assert whole["value"].to_pylist() == values
    assert np.asarray(whole["time"].cast("int64")).tolist() == times
    assert whole["sample"].to_pylist() == [k for count in counts for k in range(count)]
    assert pa.Table.from_batches(list(ch.batches(7))).to_pylist() == whole.to_pylist()
    assert ch.to_arrow(["sample"])["sample"].to_pylist() == whole["sample"].to_pylist()


def test_sample_times_are_block_times_or_interpolated() -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, "float32")
    for ns, n in ((T0, 4), (T0 + 100, 1), (T0 + 200, 2), (T0 + 200, 2), (T0 + 150, 3), (T0 + 450, 3)):
        out.values(series, ns, "float32", [0] * n)
    ch = logreel.open(out.bytes())["v"]

    def times(table: pa.Table) -> list[int]:
        return [t - T0 for t in np.asarray(table["time"].cast("int64")).tolist()]

    plain, spread = ch.to_arrow(), ch.to_arrow(interpolate=True)
    assert times(plain) == [0] * 4 + [100] + [200] * 4 + [150] * 3 + [450] * 3
    assert times(spread) == [0, 25, 50, 75, 100, 200, 200, 200, 200, 150, 250, 350, 450, 550, 650]
    assert b"first record" in plain.schema.field("time").metadata[b"meaning"]
    assert b"spread evenly" in spread.schema.field("time").metadata[b"meaning"]
    # Also in batches and from the middle, times are interpolated to the block that follows.
    parts = pa.Table.from_batches(list(ch.batches(2, interpolate=True)))
    assert times(parts) == times(spread)
    assert times(ch.to_arrow(start=T0 + 100, end=T0 + 101, interpolate=True)) == [100]
    assert "that of its first sample" in ch.schema.text


def test_block_with_incomplete_sample_is_null_in_tables() -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, "int32", names=["n"])
    out.data(series, T0, bytes(8), [1]).data(series, T0 + 1, bytes(7), [2]).data(series, T0 + 2, b"", [3])
    log = logreel.open(out.data(series, T0 + 3, bytes(4), [4]).bytes())
    assert log["v"].to_arrow().to_pydict()["n"] == [1, 1, None, 4]
    assert [p.code for p in log.problems] == ["payload"]
    messages = list(log.messages())
    assert [len(m.data) for m in messages] == [8, 7, 0, 4]
    with pytest.raises(DamagedError):
        messages[1].decode()


@pytest.mark.parametrize("dimension", [(0,), (1 << 31, 1 << 31), (1,) * 33, (1,) * 200])
def test_invalid_dimensions_are_shown_as_bytes(dimension: Sequence[int]) -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, "float64", dimension)
    log = logreel.open(out.data(series, T0, b"12345678").bytes())
    assert log["v"].to_arrow()["data"].to_pylist() == [b"12345678"]


def joined(cuts: Sequence[Sequence[int]], missing: Sequence[int] = ()) -> logreel.Channel:
    """Return a struct with one member per item of *cuts*, the numbers of samples of its blocks."""
    out = Builder()
    kinds = ["float64", "int16", "uint8"]
    members = {f"m{i}": out.pods({"varname": f"m{i}"}, kinds[i]) for i in range(len(cuts))}
    for i, cut in enumerate(cuts):
        at = 0
        for n in cut:
            if (i, at) != tuple(missing):
                out.values(i, T0 + 10 * at, kinds[i], range(100 * i + at, 100 * i + at + n))
            at += n
    out.struct({"schema": "all"}, members)
    return logreel.open(out.bytes())["all"]


def test_struct_members_are_joined_by_sample_number() -> None:
    ch = joined([(4, 4), (4, 4), (4, 4)])
    assert len(ch) == 2
    assert ch["m0"].tolist() == list(range(8))
    assert ch["m1"].tolist() == list(range(100, 108))
    assert ch["sample"].tolist() == [0, 1, 2, 3] * 2
    assert ch.times.tolist() == [T0, T0 + 40]
    # Blocks of bytes and of doubles are split at different samples.
    other = joined([(4, 4), (8,), (2, 2, 2, 2)])
    assert other["m2"].tolist() == list(range(200, 208))
    assert len(other) == 2


def test_struct_members_with_gaps_are_joined_by_time() -> None:
    ch = joined([(4, 4, 4), (4, 4, 4)], missing=(1, 4))
    assert ch["m0"].tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert ch["m1"].tolist() == [100, 101, 102, 103, 108, 109, 110, 111]


def test_structs_can_be_nested_and_hold_messages_but_not_themselves() -> None:
    out = Builder()
    x = out.pods({"v": "x"}, "float32", [2], "m")
    note = out.messages("note", "text/plain", "line")
    inner = out.struct({"s": "inner"}, {"x": x})
    outer = out.struct({"s": "outer"}, {"inner": inner, "note": note})
    out._hashes.append(hash_of("bosdyn:logtick-struct", {"s": "loop"}))
    out.struct({"s": "loop"}, {"me": outer + 1, "x": x})
    for i in range(3):
        out.values(x, T0 + i, "float32", [i, -i]).data(note, T0 + i, b"n" * i)
    log = logreel.open(out.killed())
    rows = log["outer"].to_arrow().to_pydict()
    assert [row["x"] for row in rows["inner"]] == [[0, 0], [1, -1], [2, -2]]
    assert rows["note"] == [b"", b"n", b"nn"]
    assert log["loop"].fields == ["sample", "x"]


def test_command_line_interpolates_sample_times(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = Builder()
    series = out.pods({"varname": "v"}, "float32")
    for ns in (T0, T0 + 100):
        out.values(series, ns, "float32", [1, 2])
    Path("x.bddf").write_bytes(out.bytes())
    shown = run("cat", "x.bddf", "--format", "csv", "--interpolate").out.splitlines()
    assert shown == ["time_ns,sample,value", *(f"{T0 + 50 * i},{i % 2},{i % 2 + 1}" for i in range(4))]
    assert run("convert", "x.bddf", "x.arrow/", "--interpolate").code == 0
    table = pa.ipc.open_file(next(Path("x.arrow").glob("v*.arrow"))).read_all()
    assert [t - T0 for t in table["time"].cast("int64").to_pylist()] == [0, 50, 100, 150]
    assert b"spread evenly" in table.schema.field("time").metadata[b"meaning"]
    assert json.loads(Path("x.arrow/manifest.json").read_text())["interpolate"] is True
    for wrong in (["cat", "x.bddf", "--interpolate"], ["convert", "x.bddf", "x.ndjson", "--interpolate"]):
        done = run(*wrong)
        assert (done.code, "--interpolate" in done.err) == (2, True)


def test_struct_members_get_valid_field_names() -> None:
    out = Builder()
    series = [out.pods({"varname": str(i)}, "int8") for i in range(4)]
    out.struct(
        {"schema": "s"}, dict(zip(["", "arm.joint[0]", "arm_joint_0_", "sample"], series, strict=True))
    )
    for one in series:
        out.values(one, T0, "int8", [one])
    ch = logreel.open(out.bytes())["s"]
    assert ch.fields == ["sample", "index_0", "arm_joint_0_", "arm_joint_0__2", "sample_2"]
    assert [ch[name].tolist() for name in ch.fields] == [[0], [0], [1], [2], [3]]


def test_data_blocks_of_a_struct_series_are_shown_as_bytes() -> None:
    out = Builder()
    member = out.pods({"varname": "x"}, "int8")
    struct = out.struct({"schema": "s"}, {"x": member})
    out.values(member, T0, "int8", [1]).data(struct, T0, b"mine")
    assert logreel.open(out.bytes())["s"].to_arrow()["data"].to_pylist() == [b"mine"]
