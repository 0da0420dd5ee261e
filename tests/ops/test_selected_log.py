"""A part of a log that is asked about is a view of it: equal to its slice, without a file."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logreel
from logreel.io import source
from logreel.io.remote import object_store, remote_source
from logreel.log.log import Log
from logreel.ops.inspect.text import text
from logreel.ops.rewrite.selected_log import in_force, selected_log
from logreel.ops.selection import Selection
from logreel.registry.registry import FORMATS
from support.builders.contents import SAMPLES
from support.formats import sample_log, small_log, written_formats
from support.harness.equal_tables import have_same_bytes
from support.harness.examples import half
from support.harness.range_server import serving_ranges
from support.harness.written_files import written_files
from support.samples.ulog.builder import flight


@cache
def whole(name: str) -> Log:
    """Return the sample of a format."""
    return logreel.open(sample_log(name))


@cache
def small(name: str) -> Log:
    """Return a log of a format with all kinds of records and few messages."""
    return logreel.open(small_log(name))


class Rows:
    """All rows of a channel, which NaN does not make different, but for the column *without*; or why there are none."""

    def __init__(self, ch: logreel.Channel, without: str = "") -> None:
        self.columns: dict[str, Any] = {}
        self.fields: list[Any] = []
        try:
            read = ch.to_arrow()
        except logreel.LogError as error:
            self.fields.append(type(error).__name__)
            return
        self.columns = {name: read[name] for name in read.column_names if name != without}
        self.fields += [(str(field), field.metadata) for field in read.schema]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Rows)
            and self.fields == other.fields
            and self.columns.keys() == other.columns.keys()
            and all(is_same(column, other.columns[name]) for name, column in self.columns.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.fields}{ {name: column.to_pylist() for name, column in self.columns.items()} }"


def is_same(one: Any, other: Any) -> bool:
    """Return whether two columns are equal, NaN being equal to NaN."""
    tables = (pa.table({"column": column}) for column in (one, other))
    return have_same_bytes(*tables) or str(one.to_pylist()) == str(other.to_pylist())


def answers(log: Log) -> dict[str, Any]:
    """Return what functions for users say of a log."""
    health = logreel.health(log)
    return {
        "bounds": (log.start, log.end, log.epoch, log.utc_offset, log.message_count),
        "counts": {topic: len(ch) for topic, ch in log.items()},
        "edges": {topic: (ch.start, ch.end, ch.bytes) for topic, ch in log.items()},
        "tables": {topic: Rows(ch) for topic, ch in log.items()},
        "messages": [(m.time, m.channel.topic, bytes(m.data)) for m in log.messages(order="file")],
        "by_time": [(m.time, m.channel.topic, bytes(m.data)) for m in log.messages(reverse=True)],
        "text": log.text,
        "attachments": {name: attachment.read() for name, attachment in log.attachments.items()},
        "actors": list(log.actors),
        # Koblenz sensors are ordered by their first message. Problems are those of the log; a slice may have one more:
        # the declaration of a struct that names a member which is left out.
        "summary": sorted(
            (fact.key, fact.text, str(fact.value))
            for section in logreel.summary(log)
            for fact in section
            if fact.key != "problems"
        ),
        "health": (health.detections, health.clean, health.not_assessed, health.failed),
        "stats": sorted(str(channel.as_dict()) for channel in logreel.stats(log, fields=True)),
    }


@st.composite
def selections(draw: st.DrawFn, log: Log) -> Selection:
    """Return a part of a log."""
    start, end = log.start or 0, log.end or 0
    topics = st.lists(st.sampled_from(sorted(log)), min_size=1, max_size=4, unique=True)
    times = st.one_of(st.none(), st.integers(start, end - 1))
    chosen, without, first, last = draw(st.one_of(st.none(), topics)), draw(topics), draw(times), draw(times)
    if first is not None and last is not None and first >= last:
        first, last = last, first + 1
    count = draw(st.one_of(st.none(), st.integers(1, 60)))
    return Selection(chosen, () if chosen else without, first, last, count=count)


def compare(log: Log, selection: Selection) -> None:
    """Compare the view with the slice of a part."""
    written = io.BytesIO()
    try:
        logreel.slice(log, written, selection=selection)
    except logreel.UsageError as error:
        with pytest.raises(type(error)), selected_log(log, selection):
            pass
        return
    cut = logreel.open(written.getvalue(), format=log.format)
    due = answers(cut)
    with written_files() as files, selected_log(log, selection) as part:
        found = answers(part)
        assert files == []
        for key, value in due.items():
            assert found[key] == value, key
        if not selection.has_interval:
            assert part.parameters == cut.parameters
        else:
            span = selection.start, selection.end
            assert dict(part.parameters) == {
                name: in_force(parameter, *span)  # type: ignore[arg-type]
                for name, parameter in log.parameters.items()
            }


@pytest.mark.parametrize("name", written_formats())
@settings(max_examples=half(4), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_view_answers_as_the_slice(name: str, data: st.DataObject) -> None:
    compare(small(name), data.draw(selections(small(name))))


def test_a_struct_of_a_view_does_without_members_that_are_left_out() -> None:
    log = whole("bddf")
    for member in log["body"].metadata["members"]:
        selection = Selection(exclude=f"patrol/body/{member}")
        compare(log, selection)
        with selected_log(log, selection) as part:
            assert len(part["body"]) == len(log["body"])


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("ulog", "battery_status.voltage_v < 16"),
        ("mcap", '"/fix".latitude > 0'),
        ("rosbag", '"/odom".pose.pose.position.x > 1'),
    ],
)
def test_a_view_of_a_condition_answers_as_the_slice(name: str, where: str) -> None:
    compare(whole(name), Selection(where=where))


def test_a_part_of_a_view_is_a_part_of_the_log() -> None:
    log = whole("ulog")
    start = log.start or 0
    with (
        selected_log(log, Selection(exclude="sensor_accel")) as view,
        selected_log(view, Selection(start=start + 10**10)) as found,
        selected_log(log, Selection(exclude="sensor_accel", start=start + 10**10)) as due,
    ):
        assert answers(found) == answers(due)


def test_questions_about_a_part_write_no_file(tmp_path: Path) -> None:
    for suffix, make in SAMPLES.items():
        path = tmp_path / f"a{suffix}"
        path.write_bytes(make())
        with written_files() as files:
            logreel.summary(path, start="+100ms")
            logreel.info(path, start="+100ms")
            with logreel.open(path) as log:
                topic = next(ch.topic for ch in log.match(None))
                list(text(log, topics=topic))
                logreel.health(log, topics=topic)
            assert files == []


def test_a_part_of_several_files_is_that_of_its_slice(tmp_path: Path) -> None:
    first, second = tmp_path / "1.ulg", tmp_path / "2.ulg"
    first.write_bytes(flight(6.0))
    second.write_bytes(flight(4.0))
    with logreel.open([first, second], align="+100s", anyway=True) as log:
        selection = Selection(["sensor_gps", "battery_status"], start="+2s", end="+102s")
        logreel.slice(log, tmp_path / "cut.ulg", selection=selection)
        with logreel.open(tmp_path / "cut.ulg") as cut, selected_log(log, selection) as part:
            assert {topic: len(part[topic]) for topic in selection.topics or ()} == {
                topic: len(cut[topic]) for topic in selection.topics or ()
            }
            for topic in selection.topics or ():
                assert part[topic].times.tolist() == cut[topic].times.tolist()
                # The slice has the shift in this field, too.
                assert Rows(part[topic], "timestamp") == Rows(cut[topic], "timestamp")
            assert list(part) == list(cut)
            assert (part.start, part.end) == (cut.start, cut.end)
            assert part.problems == log.problems


@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".bddf"])
def test_a_part_of_a_remote_log_is_that_of_the_local_one(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="needs obstore: pip install 'logreel[remote]'")
    monkeypatch.setattr(source, "HEAD_BYTES", 64)
    monkeypatch.setattr(object_store, "HEAD_BYTES", 64)
    monkeypatch.setattr(remote_source, "SMALL_BYTES", 0)
    content = sample_log({".mcap": "mcap", ".bag": "rosbag", ".bddf": "bddf"}[suffix])
    with (
        serving_ranges() as served,
        logreel.open(served.put(f"a{suffix}", content)) as log,
        logreel.open(content) as local,
    ):
        assert log.index.reads_in_ranges
        start, end = local.start or 0, local.end or 0
        for selection in (
            Selection(start=start + (end - start) // 4, end=start + (end - start) // 2),
            Selection([ch.topic for ch in local.match(None)][:2]),
            Selection(count=20),
        ):
            with selected_log(log, selection) as part, selected_log(local, selection) as due:
                assert answers(part) == answers(due)


def test_a_format_without_a_writer_can_be_asked_about_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(flight(6.0))
    due = logreel.info(path, start="+2s")
    real = FORMATS.load("ulog")
    monkeypatch.setattr(FORMATS, "_own", {**FORMATS.own(), "ulog": replace(real, create=None)})
    with pytest.raises(logreel.UnsupportedError):
        logreel.slice(path, tmp_path / "b.ulg", start="+2s")
    assert logreel.info(path, start="+2s") == due
