"""Fixed limits: each one has a test, and the text of what is beyond it names the bound."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import logreel
from logreel.errors import DefinitionError, UsageError
from logreel.io.source import Source
from logreel.limits import Limits, fixed_limits
from logreel.outputs.http.routes import Flow
from logreel.outputs.view.limits import SQL_CHARACTERS, SQL_MEMORY
from support.builders.growing_samples import SAMPLES
from support.formats import builtin_formats

ROOT = Path(__file__).parents[2]

#: Tests of the fixed limits, by file and name.
TESTS: dict[str, dict[str, tuple[str, ...]]] = {
    "tests/damage/test_fixed_limits.py": {
        "test_a_layout_with_too_many_leaves_is_refused": ("layout.nodes:MAX_LEAVES",),
        "test_a_ros_1_definition_that_is_too_long_is_refused": ("schemas.ros1msg.definition:MAX_TEXT",),
        "test_a_ros_name_that_is_too_long_is_refused": ("schemas.ros1msg.definition:MAX_NAME",),
        "test_a_ros_2_definition_that_is_too_long_is_refused": ("schemas.ros2msg:MAX_TEXT",),
        "test_a_bag_header_that_is_too_long_is_a_problem": ("formats.rosbag.records:MAX_HEADER",),
        "test_follow_waits_for_an_unfinished_record_up_to_its_limit": (
            "formats.rosbag.reader:PENDING",
            "formats.mcap.reader:PENDING",
            "formats.bddf.reader:PENDING",
            "formats.carla.reader:LONGEST",
            "formats.koblenz.reader:LONGEST",
        ),
        "test_an_mcap_chunk_beyond_32_bit_offsets_is_named_as_such": ("formats.mcap.chunks:LARGEST",),
        "test_a_bddf_series_with_too_high_a_number_is_a_problem": ("formats.bddf.reader:MAX_SERIES",),
        "test_a_bddf_descriptor_that_is_too_long_is_a_problem": ("formats.bddf.records:MAX_DESCRIPTOR",),
        "test_a_bddf_struct_that_is_too_deep_is_a_problem": ("formats.bddf.value_series:MAX_DEPTH",),
        "test_a_ulog_format_that_is_too_large_is_a_problem": ("formats.ulog.definitions:MAX_BYTES",),
        "test_more_logs_in_a_ulog_than_segments_are_a_problem": ("formats.ulog.reader:MAX_SEGMENTS",),
        "test_a_koblenz_message_that_is_too_large_is_a_problem": ("formats.koblenz.records:MAX_SIZE",),
        "test_too_many_unknown_types_of_a_koblenz_log_are_a_problem": (
            "formats.koblenz.framing:MAX_UNKNOWN",
        ),
        "test_an_index_file_that_is_too_large_is_not_read": ("registry.index_cache:MAX_TIMES",),
        "test_a_recorded_line_that_was_cut_says_so": ("ops.record.lines:LONGEST",),
        "test_channels_of_a_foxglove_server_are_bounded": ("ops.record.sources.foxglove:MOST_CHANNELS",),
        "test_logs_of_slices_are_bounded_together": ("outputs.http.routes:MOST_STREAMED_LOGS",),
        "test_an_sql_expression_that_is_too_long_is_refused": ("outputs.view.limits:SQL_CHARACTERS",),
        "test_an_sql_expression_over_too_many_rows_is_refused": ("outputs.view.limits:SQL_ROWS",),
        "test_an_sql_expression_has_bounded_memory": ("outputs.view.limits:SQL_MEMORY",),
    },
    "tests/formats/test_bddf_pods_and_structs.py": {
        "test_invalid_dimensions_are_shown_as_bytes": ("formats.bddf.records:MAX_DIMENSIONS",),
    },
    "tests/schemas/test_ros2_idl.py": {
        "test_modules_in_one_another_are_bounded": ("schemas.ros2idl:MAX_MODULES",),
    },
    "tests/formats/test_koblenz_reading.py": {
        "test_sensors_after_limit_share_a_channel": ("formats.koblenz.scan_builder:MAX_SENSORS",),
    },
    "tests/formats/test_rosbag2.py": {
        "test_rows_and_problems_are_bounded": (
            "formats.rosbag2.reader:MAX_ROWS",
            "formats.rosbag2.reader:MAX_ROW",
            "formats.rosbag2.reader:MAX_UNKNOWN",
            "formats.rosbag2.pages:MAX_PROBLEMS",
        ),
        "test_a_text_of_yaml_is_bounded": ("formats.rosbag2.yaml:MAX_TEXT", "formats.rosbag2.yaml:MAX_DEPTH"),
    },
    "tests/formats/test_rosbag_empty_types.py": {
        "test_too_large_count_of_empty_items_is_a_problem": ("kernels.layout:SPARE",),
    },
    "tests/formats/test_ulog_events.py": {
        "test_huge_xz_dictionary_is_refused": ("formats.ulog.events:MAX_LZMA",),
        "test_sentence_length_is_limited": ("formats.ulog.events:MAX_TEXT",),
    },
    "tests/kernels/test_layout_walker.py": {
        "test_more_bytes_than_32_bit_offsets_make_several_batches": ("layout.nodes:MAX_SIZE",),
    },
    "tests/layout/test_layout.py": {
        "test_deep_nesting_is_refused": ("layout.nodes:MAX_DEPTH",),
    },
    "tests/ops/test_bounded_queries.py": {
        "test_a_query_ends_when_its_time_is_over": ("outputs.view.limits:SQL_SECONDS",),
    },
    "tests/ops/test_record_foxglove.py": {
        "test_a_message_larger_than_allowed_ends_the_source": ("ops.record.sources.foxglove:LARGEST",),
    },
    "tests/ops/test_record_sockets.py": {
        "test_endless_lines_need_bounded_memory": ("ops.record.sources.streams:LONGEST",),
    },
    "tests/outputs/test_file_names.py": {
        "test_file_names_of_a_thousand_hostile_attachments_are_different": ("outputs.files:MAX_BYTES",),
    },
    "tests/outputs/test_foxglove_gate.py": {
        "test_more_clients_than_allowed_get_503": ("outputs.http.websocket_gate:CONNECTIONS",),
        "test_half_handshakes_are_closed_and_shut_nobody_out": (
            "outputs.http.websocket_gate:PENDING",
            "outputs.http.websocket_gate:HEAD_SECONDS",
        ),
        "test_a_client_that_takes_nothing_is_dropped": ("outputs.http.websocket_gate:SLOW_SECONDS",),
        "test_a_message_that_is_too_large_ends_the_connection_of_that_client_only": (
            "outputs.http.websocket_gate:MESSAGE_BYTES",
        ),
    },
    "tests/outputs/test_serve_limits.py": {
        "test_the_head_limit_is_16_kib_however_the_head_arrives": ("outputs.http.server:HEAD_BYTES",),
        "test_half_requests_are_closed_and_shut_nobody_out": (
            "outputs.http.server:HEAD_SECONDS",
            "outputs.http.server:CONNECTIONS",
        ),
        "test_a_client_that_takes_nothing_is_dropped": ("outputs.http.server:SLOW_SECONDS",),
        "test_one_client_cannot_have_all_connections": ("outputs.http.server:PER_CLIENT",),
    },
    "tests/outputs/test_serve_streams.py": {
        "test_too_many_slices_at_once_give_503": ("outputs.http.routes:MOST_STREAMS",),
        "test_a_client_that_reads_nothing_is_disconnected": ("outputs.http.routes:PATIENCE",),
    },
}

#: Constants with names of limits in the code that reads what is not trusted, which bound nothing for its user.
NO_LIMITS = {
    # What logreel itself writes, or which values a format has at all.
    "formats/mcap/writer.py:LARGEST",
    "formats/mcap/writer.py:WAITING_BYTES",
    "formats/rosbag/writer.py:LARGEST",
    "formats/ulog/definitions.py:MAX_SIZE",
    "formats/ulog/writer.py:MAX_ID",
    "formats/carla/__init__.py:LONGEST_NAME",
    "formats/carla/writer.py:_LONGEST",
    "formats/carla/copier.py:_MOST_RECORDS",
    "formats/carla/reader.py:_LARGEST",
    "formats/carla/columns.py:MAX_SECONDS",
    "formats/carla/payload_decoders.py:_MOST",
    "formats/koblenz/records.py:MAX_ID",
    "formats/koblenz/records.py:MAX_MS",
    "formats/koblenz/framing.py:MAX_ENTRIES",
    "formats/mcap/writer.py:_MAX_THREADS",
    "formats/rosbag2/page_writer.py:LARGEST",
    "formats/rosbag2/page_writer.py:MOST_TOPICS",
    "formats/rosbag2/pages.py:MAX_PAGE",
    "formats/rosbag2/reader.py:HEAD_BYTES",
    "formats/rosbag2/reader.py:MAX_SIZE",
    "formats/rosbag2/writer.py:MOST_FILES",
    # How far readers look for evidence, how the index is divided, and how much is kept to be faster.
    "formats/rosbag/records.py:LONGEST_FOUND",
    "formats/rosbag/records.py:MAX_LINE",
    "formats/rosbag/records.py:_LONGEST",
    "formats/bddf/index_reader.py:MOST_ENTRIES",
    "formats/bddf/records.py:_LONGEST",
    "formats/bddf/records.py:_MAX_DATA_DESCRIPTOR",
    "formats/rosbag/reader.py:MAX_SPAN",
    "formats/mcap/reader.py:MAX_SPAN",
    "formats/ulog/reader.py:MAX_DOUBTFUL",
    "formats/ulog/reader.py:MAX_BEFORE_FORMATS",
    "formats/koblenz/records.py:_LONGEST_NOTE",
    "formats/koblenz/reader.py:MAX_PASSES",
    "formats/ulog/events.py:MOST_KNOWN",
    "schemas/ros1msg/definition.py:_MAX_DIGITS",
    "schemas/protobuf/layouts.py:_LIMIT",
    "schemas/protobuf/encoder.py:_LONGEST",
    "layout/nodes.py:MAX_NAMED",
    "layout/program.py:MAX_INLINE",
    "layout/numpy_columns.py:MAX_STRUCTS",
    # What is kept for later; what is not is made again.
    "layout/layout.py:MAX_PARTS",
    # Files of the user, or what is shown of a log.
    "schemas/ros2msg.py:_MAX_FILES",
    "schemas/catalogue.py:MAX_BYTES",
    "schemas/catalogue.py:MAX_FILES",
    "formats/koblenz/catalogue.py:MAX_TEXT",
    "formats/carla/simulator/replay.py:MAX_STEPS",
    "formats/carla/simulator/trajectories.py:MOST_ACTORS",
    "formats/carla/simulator/trajectories.py:_LONGEST",
    "formats/ulog/charts.py:MAX_OUTPUTS",
    # Types that are described at the end of a log are an addition: without them, its messages stay bytes.
    "formats/koblenz/definitions.py:MAX_BYTES",
}

_NAMES = re.compile(
    r"_?(MAX_[A-Z_]+|LARGEST|LONGEST[A-Z_]*|PENDING|CONNECTIONS|PER_CLIENT|MOST[A-Z_]*|LOGS|WAITING_BYTES|_?LIMIT"
    r"|HEAD_SECONDS|SLOW_SECONDS|HEAD_BYTES|MESSAGE_BYTES)"
)


def constants() -> Iterator[str]:
    """Yield module paths and names of constants that are called as limits are, of the code that reads logs."""
    root = ROOT / "src" / "logreel"
    for folder in ("formats", "schemas", "layout", "outputs/http"):
        for path in sorted((root / folder).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                targets = node.targets if isinstance(node, ast.Assign) else []
                first = (
                    targets[0].elts[0]
                    if targets and isinstance(targets[0], ast.Tuple)
                    else (targets or [None])[0]
                )
                if isinstance(first, ast.Name) and _NAMES.fullmatch(first.id):
                    yield f"{path.relative_to(root).as_posix()}:{first.id}"


@cache
def places() -> tuple[str, ...]:
    """Return the module and constant of every fixed limit, from the functions in which rooms and formats list them."""
    root = ROOT / "src" / "logreel"
    trees = [
        ast.parse(path.read_text())
        for path in [*root.glob("*/__init__.py"), *root.glob("formats/*/__init__.py")]
    ]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return tuple(place for function in functions for place in places_in(function))


def places_in(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the module and constant of each FixedLimit in a function, which imports the modules."""
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in function.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "FixedLimit":
            module, _, constant = ast.unparse(node.args[1]).rpartition(".")
            yield f"{imported[module]}:{constant}"


def test_every_listed_limit_has_the_value_of_its_constant() -> None:
    values = [
        getattr(importlib.import_module(m), name) for m, _, name in (one.partition(":") for one in places())
    ]
    assert sorted(map(str, values)) == sorted(str(one.value) for one in fixed_limits())


def test_every_constant_that_is_called_a_limit_is_listed_or_known_to_be_none() -> None:
    listed = {one.removeprefix("logreel.").replace(".", "/").replace(":", ".py:") for one in places()}
    found = set(constants())
    assert found - listed - NO_LIMITS == set()
    assert NO_LIMITS - found == set()
    assert NO_LIMITS & listed == set()


def test_every_fixed_limit_has_a_test() -> None:
    tested = [where for names in TESTS.values() for several in names.values() for where in several]
    assert sorted(tested) == sorted(one.removeprefix("logreel.") for one in places())
    for file, names in TESTS.items():
        text = (ROOT / file).read_text()
        assert [name for name in names if f"def {name}(" not in text] == []


# ------------------------------------------------------------------------------------------------------ definitions


def test_a_layout_with_too_many_leaves_is_refused() -> None:
    from logreel.layout.layout import Layout
    from logreel.layout.nodes import MAX_LEAVES, Field, Scalar, Struct

    with pytest.raises(DefinitionError, match=f"more than {MAX_LEAVES} leaves"):
        Layout(Struct(tuple(Field(f"f{i}", Scalar("uint8")) for i in range(MAX_LEAVES + 1))), "large")


def test_a_ros_1_definition_that_is_too_long_is_refused() -> None:
    from logreel.schemas.ros1msg.definition import MAX_TEXT, parse_message
    from logreel.schemas.ros1msg.registry import parse

    for function in (parse_message, parse):
        with pytest.raises(DefinitionError, match=f"at most {MAX_TEXT} are read"):
            function("#" * (MAX_TEXT + 1), "a/B")


def test_a_ros_2_definition_that_is_too_long_is_refused() -> None:
    from logreel.schemas.ros2msg import MAX_TEXT, parse

    with pytest.raises(DefinitionError, match=f"at most {MAX_TEXT} are read"):
        parse("#" * (MAX_TEXT + 1), "a/B")


def test_a_ros_name_that_is_too_long_is_refused() -> None:
    from logreel.schemas.ros1msg.definition import MAX_NAME
    from logreel.schemas.ros1msg.registry import parse

    assert parse("uint8 " + "x" * MAX_NAME, "a/B")
    with pytest.raises(DefinitionError, match=r"line 1|characters"):
        parse("uint8 " + "x" * (MAX_NAME + 1), "a/B")
    with pytest.raises(DefinitionError, match=f"{MAX_NAME + 1} characters"):
        parse("uint8 x", "a" * (MAX_NAME + 1))


def test_a_ulog_format_that_is_too_large_is_a_problem() -> None:
    from support.samples.ulog.builder import Builder

    out = Builder().flags().format("t:uint64_t timestamp;uint8_t[65000] a;uint8_t[600] b;").subscribe("t", 0)
    log = logreel.open(out.data(0, bytes(30)).bytes())
    (found,) = [one.text for one in log.problems if one.code == "definition"]
    assert "at most 65535" in found


# ------------------------------------------------------------------------------------------------ records of formats


def test_a_bag_header_that_is_too_long_is_a_problem() -> None:
    from logreel.formats.rosbag.records import MAX_HEADER
    from support.samples.rosbag.builder import tiny

    data = tiny("2.0")
    log = logreel.open(data + struct.pack("<I", MAX_HEADER + 1) + bytes(100))
    assert any(f"at most {MAX_HEADER} are read" in one.text for one in log.problems), log.problems


def test_an_mcap_chunk_beyond_32_bit_offsets_is_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    from test_limits import BOMBS, chunk_problems

    from logreel.formats.mcap import chunks

    monkeypatch.setattr(chunks, "LARGEST", 10_000)
    for kind in ("mcap, zstd", "mcap, lz4"):
        (found,) = chunk_problems(BOMBS[kind](1 << 20), None)
        assert "more than 10000 bytes: offsets in a chunk have 32 bits" in found
        assert "chunk_ratio" not in found
        (found,) = chunk_problems(BOMBS[kind](1 << 20), Limits(chunk_bytes=5000))
        assert "the limit chunk_bytes" in found


def test_a_bddf_series_with_too_high_a_number_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    # What reads it must not be imported while it is another one.
    import logreel.formats.bddf.index_reader
    from logreel.formats.bddf import reader
    from support.samples.bddf.builder import Builder

    monkeypatch.setattr(reader, "MAX_SERIES", 1)
    out = Builder()
    for name in ("a", "b"):
        out.data(out.messages(name), 10**18, b"x")
    log = logreel.open(out.killed())
    assert list(log.channels) == ["a"]
    assert "a series with number 1; the highest is 0" in [one.text for one in log.problems if one.lost]


def test_a_bddf_descriptor_that_is_too_long_is_a_problem() -> None:
    from logreel.formats.bddf.records import MAX_DESCRIPTOR
    from support.samples.bddf.builder import Builder

    out = Builder()
    first = out.messages("a")
    out.data(first, 10**18, b"x")
    out.series({"bosdyn:channel": "b"}, b"", annotations={"org:long": "a" * MAX_DESCRIPTOR})
    out.data(first, 10**18 + 1, b"y")
    log = logreel.open(out.killed())
    assert len(log["a"]) == 2
    (found,) = [one for one in log.problems if "descriptor of" in one.text]
    assert f"at most {MAX_DESCRIPTOR} are read" in found.text
    assert found.lost
    assert found.size > MAX_DESCRIPTOR


def test_a_bddf_struct_that_is_too_deep_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.formats.bddf import value_series
    from support.samples.bddf.builder import PODS, Builder

    monkeypatch.setattr(value_series, "MAX_DEPTH", 1)
    out = Builder()
    inner = out.pods({"bosdyn:pod": "p"}, next(iter(PODS)))
    for level in range(3):
        inner = out.struct({"bosdyn:struct": f"s{level}"}, {"m": inner})
    log = logreel.open(out.bytes())
    texts = [one.text for one in log.problems]
    for ch in log.values():
        _ = ch.layout
    texts += [one.text for one in log.problems]
    assert any("nested more than 1 deep" in one for one in texts), texts


def test_more_logs_in_a_ulog_than_segments_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.formats.ulog import reader
    from support.samples.ulog.builder import tiny

    def segments(count: int) -> tuple[int, list[str]]:
        log = logreel.open(tiny() * count)
        return len(log.segments), [one.text for one in log.problems if one.code == "segment"]

    monkeypatch.setattr(reader, "MAX_SEGMENTS", 3)
    held, texts = segments(3)
    assert held == 3
    assert not [one for one in texts if "more than 3" in one]
    held, texts = segments(6)
    assert held == 3
    # Once, not for each further log.
    assert len([one for one in texts if "the file has more than 3" in one]) == 1


def test_a_koblenz_message_that_is_too_large_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.formats.koblenz import framing, records
    from support.samples.koblenz.builder import Builder

    out = Builder()
    for k in range(3):
        out.obd(1000.0 + k, 1, 2, 3.0)
    out.add("UnknownM", 1003.0, bytes(5000))
    out.obd(1004.0, 1, 2, 3.0)
    assert len(logreel.open(out.bytes()).channels) == 2
    for module in (framing, records):
        monkeypatch.setattr(module, "MAX_SIZE", 1000)
    log = logreel.open(out.bytes())
    assert [len(ch) for ch in log.values()] == [4]
    assert sum(one.size for one in log.problems if one.lost) > 5000


def test_too_many_unknown_types_of_a_koblenz_log_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.formats.koblenz import framing
    from support.samples.koblenz.builder import Builder

    out = Builder()
    out.obd(1000.0, 1, 2, 3.0)
    for k in range(1, 9):
        out.add(f"Unknown{'ABCDEFGH'[k - 1]}M", 1000.0 + k, bytes(12))
    out.obd(1010.0, 1, 2, 3.0)
    known = len(logreel.open(out.bytes()).channels)
    monkeypatch.setattr(framing, "MAX_UNKNOWN", 3)
    log = logreel.open(out.bytes())
    assert len(log.channels) < known
    assert any(one.lost for one in log.problems)


# ---------------------------------------------------------------------------------------------------------- growing


def carla() -> bytes:
    from support.samples.carla.builder import Builder

    out = Builder()
    for k in range(3):
        frame = out.frame(k * 0.05)
        if k == 0:
            frame.add(1, 1, "vehicle.a.b")
        frame.position(1, (k, 0, 0))
    return out.bytes()


def koblenz() -> bytes:
    from support.samples.koblenz.builder import Builder

    out = Builder()
    for k in range(4):
        out.obd(1000.0 + k, 1, 2, 3.0)
    return out.bytes()


@pytest.mark.parametrize("sample", ["bag 2.0", "mcap plain", "bddf", "carla", "koblenz"])
def test_follow_waits_for_an_unfinished_record_up_to_its_limit(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the limit the size of the record is not believed: the log is read again as a damaged one."""
    others: dict[str, tuple[str, Callable[[], bytes]]] = {
        "carla": ("carla", carla),
        "koblenz": ("koblenz", koblenz),
    }
    name, build = SAMPLES.get(sample) or others[sample]
    module = importlib.import_module(f"logreel.formats.{name}.reader")
    limit = next(name for name in ("PENDING", "LONGEST") if f"{module.__name__}:{name}" in places())
    data = build()

    def waiting() -> set[int]:
        """Return the lengths of the sample at which its last record is waited for."""
        found = set()
        for length in range(len(data) - 60, len(data)):
            follow = builtin_formats()[name].follow
            assert follow is not None
            if follow().extend(Source(data[:length], "growing")) is not None:
                found.add(length)
        return found

    usual = waiting()
    monkeypatch.setattr(module, limit, 4)
    assert waiting() < usual


# ------------------------------------------------------------------------------------------------ recording, serving


def test_a_recorded_line_that_was_cut_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.ops.record import lines
    from logreel.ops.record import lines as pipe_lines

    for module in (lines, pipe_lines):
        monkeypatch.setattr(module, "LONGEST", 80)
    rows = [b'{"topic": "a", "time_ns": 1, "data": {"x": 1}}', b'{"topic": "b' + b"b" * 200, b'{"topic": 1']
    (tmp_path / "lines").write_bytes(b"".join(row + b"\n" for row in rows))
    with (tmp_path / "lines").open("rb") as file:
        done = logreel.record(file, tmp_path / "a.mcap")
    (cut,) = [one for one in done.skipped if "cut at 80 bytes" in one]
    assert cut.startswith("line 2: ")
    assert done.messages == 1


def test_channels_of_a_foxglove_server_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.ops.record.sources import foxglove

    skipped: list[str] = []
    feed = SimpleNamespace(wants=lambda topic: True, skip=skipped.append)
    monkeypatch.setattr(foxglove, "MOST_CHANNELS", 0)
    source = foxglove.FoxgloveSource("ws://127.0.0.1:1")
    channel = {"id": 1, "topic": "a", "encoding": "json", "schemaName": "", "schema": ""}
    connection = SimpleNamespace(send=lambda text: None)
    source._advertise([channel], connection, feed)
    assert skipped == ["channel 'a' was left out: more than 0 channels"]


def test_logs_of_slices_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.exceptions import HTTPException

    from logreel.outputs.http import routes

    class Stopped:
        def stop(self) -> None:
            pass

    monkeypatch.setattr(routes, "MOST_STREAMED_LOGS", 3)
    flows, one, two, three = (
        routes.Flows(),
        *(cast(Flow, Stopped()) for _ in range(3)),
    )
    # A single slice may read more, or it could not be had at all.
    flows.add(one, 5)
    with pytest.raises(HTTPException) as refused:
        flows.add(two)
    assert refused.value.status_code == 503
    flows.drop(one)
    flows.add(two, 2)
    flows.add(three, 1)


def test_an_index_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.registry import index_cache
    from support.samples.ulog.builder import tiny

    path = tmp_path / "a.ulg"
    path.write_bytes(tiny())
    sidecar = index_cache.write(str(path))
    parsed: list[str] = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    logreel.open(path)
    assert len(parsed) == 1
    os.truncate(sidecar, index_cache.MAX_TIMES * len(tiny()) + index_cache._MORE + 1)
    logreel.open(path)
    assert len(parsed) == 1


def test_an_sql_expression_over_too_many_rows_is_refused() -> None:
    from logreel.ops.query.where import expression_column
    from support.samples.ulog.builder import flight

    pytest.importorskip("duckdb")
    ch = logreel.open(flight(1))["vehicle_attitude"]
    for rows in (len(ch), 5):
        limits = rows, 60.0, SQL_MEMORY, lambda: None
        if rows == 5:
            with pytest.raises(UsageError, match="up to 5"):
                expression_column(ch, "timestamp", *limits)
        else:
            assert len(expression_column(ch, "timestamp", *limits)) == rows


def test_an_sql_expression_has_bounded_memory() -> None:
    from logreel.ops.query.sql import Bounds, answer
    from support.samples.ulog.builder import tiny

    query = "SELECT list(range) AS x FROM range(20000000)"
    with (
        logreel.open(tiny()) as log,
        pytest.raises(logreel.LogError, match=r"[Mm]emory"),
        answer(query, [log], bounds=Bounds(300, "20MB", lambda: None)) as (_, batches),
    ):
        list(batches)


def test_an_sql_expression_that_is_too_long_is_refused() -> None:
    from logreel.outputs.view.columns import _checked

    assert _checked({"topic": "a", "sql": "x" * SQL_CHARACTERS})
    with pytest.raises(UsageError, match=f"at most {SQL_CHARACTERS} characters"):
        _checked({"topic": "a", "sql": "x" * (SQL_CHARACTERS + 1)})
