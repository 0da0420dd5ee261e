"""Real flights: every column, text, parameter and dropout against pyulog."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyulog import ULog

import logreel
from logreel.formats.ulog.definitions import RELEASES, release_number
from support.oracles.pyulog_values import flight

NAMES = [
    "battery_brownout.ulg",
    "corrupt_actuator_armed_wrong_size.ulg",
    "ekf_failure.ulg",
    "esc_status_log.ulg",
    "mcap_test_ulog.ulg",
    "quadrotor_local.ulg",
    "sample.ulg",
    "sample_appended_multiple.ulg",
    "sample_log_small.ulg",
    "sample_logging_tagged_and_default_params.ulg",
    "sample_px4_events.ulg",
    "yule_powers.ulg",
    "yule_short_list.ulg",
]
#: The header of a message, then zeros to the end of the file: damaged, though all rows before it are sound.
DAMAGED = {"corrupt_actuator_armed_wrong_size.ulg"}


@pytest.fixture(params=NAMES, scope="module")
def path(request: pytest.FixtureRequest, shared: Path) -> Path:
    return shared / "data" / "ulog" / str(request.param)


def channel_name(data: ULog.Data) -> str:
    return data.name if data.multi_id == 0 else f"{data.name}[{data.multi_id}]"


def test_counts_equal_linear_walk(path: Path) -> None:
    expected = json.loads((path.parent / "counts.json").read_text())[path.name]["pyulog"]["topics"]
    log = logreel.open(path)
    got = {
        f"{ch.schema.name}[{ch.metadata['multi_id']}]": len(ch)
        for ch in log.channels.values()
        if len(ch) and not ch.reserved
    }
    assert got == expected
    assert log.message_count == sum(expected.values())


def test_only_damaged_log_has_problems(path: Path) -> None:
    problems = logreel.open(path).problems
    if path.name in DAMAGED:
        assert [(p.code, p.offset, p.size) for p in problems] == [("zeros", 751497, 711032)]
    else:
        assert problems == ()


def test_every_column_equals_pyulog_bit_for_bit(path: Path) -> None:
    log, peer = logreel.open(path), flight(path)
    assert {channel_name(d) for d in peer.data_list} == {
        n for n, ch in log.channels.items() if len(ch) and n[0] != "~"
    }
    tables = log.tables()
    for data in peer.data_list:
        ch, table = log[channel_name(data)], tables[channel_name(data)]
        plain = {f.name for f in table.schema if pa.types.is_primitive(f.type)}
        for name, theirs in data.data.items():
            # pyulog shows the padding inside messages, which holds nothing, and bool as the raw byte: PX4 writes
            # 0x99 where a value was never set. Any byte but 0 is true (docs/formats/ulog.md).
            if "_padding" in name:
                continue
            # Single fields that are columns of a table are compared with these below.
            ours = table.column(name).to_numpy() if name in plain else ch[name]
            if ours.dtype == bool:
                theirs = theirs != 0
            assert ours.dtype.itemsize == theirs.dtype.itemsize, (ch.topic, name)
            assert ours.tobytes() == np.ascontiguousarray(theirs).tobytes(), (ch.topic, name)
        stamps = data.data["timestamp"]
        fits = stamps <= (2**63 - 1) // 1000
        due = np.where(fits, np.where(fits, stamps, 0).astype(np.int64) * 1000, 2**63 - 1)
        assert np.array_equal(ch.times, due)


def content(table: pa.Table) -> list[tuple[str, list[bytes | None]]]:
    """Return types and buffers: unlike with ``equals``, NaN equals NaN."""
    return [
        (str(f), [b and b.to_pybytes() for chunk in column.chunks for b in chunk.buffers()])
        for f, column in zip(table.schema, table.columns, strict=True)
    ]


def test_tables_equal_single_fields(path: Path) -> None:
    log = logreel.open(path)
    together = log.tables()
    for name, table in together.items():
        ch = log[name]
        assert content(table) == content(ch.to_arrow()), name
        assert np.array_equal(table.column("time").to_numpy().view("i8"), ch.times)
        for column in table.column_names[1:]:
            if pa.types.is_primitive(table.schema.field(column).type):
                assert table.column(column).to_numpy().tobytes() == ch[column].tobytes(), (name, column)


def test_parameters_equal_pyulog(path: Path) -> None:
    log, peer = logreel.open(path), flight(path)
    ours = log.parameters
    assert {n: p.value for n, p in ours.items() if p.value is not None} == peer.initial_parameters
    changes = [(c.time // 1000, n, c.value) for n, p in ours.items() for c in p.changes]
    assert sorted(changes) == sorted(peer.changed_parameters)
    if peer.has_default_parameters:
        for bit, kind in enumerate(("system", "setup")):
            theirs = peer.get_default_parameters(bit)
            assert {n: p.defaults[kind] for n, p in ours.items() if kind in p.defaults} == theirs


def test_information_equals_pyulog(path: Path) -> None:
    log, peer = logreel.open(path), flight(path)
    metadata = dict(log.metadata)
    # Versions are packed numbers, which pyulog unpacks when asked.
    metadata |= {k: release_number(metadata[k]) for k in RELEASES if k in metadata}
    assert {k: metadata[k] for k in peer.msg_info_dict} == peer.msg_info_dict
    shown = peer.get_version_info_str()
    assert (
        shown is None or shown.replace(" (", "-").replace(")", "").lower() == log.metadata["ver_sw_release"]
    )
    for name, entries in peer.msg_info_multiple_dict.items():
        if isinstance(entries[0][0], str):
            assert log.metadata[name] == entries
            texts = [a.read().decode() for n, a in log.attachments.items() if n.startswith(name)]
            assert texts == ["".join(e) for e in entries]
        else:
            (binary,) = (a for n, a in log.attachments.items() if n.startswith(name))
            assert binary.read() == b"".join(bytes(p) for e in entries for p in e)


def test_dropouts_equal_pyulog(path: Path) -> None:
    log, peer = logreel.open(path), flight(path)
    theirs = [(d.timestamp, d.duration) for d in peer.dropouts]
    if not theirs:
        assert "~dropout" not in log
        return
    ch = log["~dropout"]
    ours = list(zip((ch.times // 1000).tolist(), ch["duration"].tolist(), strict=True))
    if path.name == "sample_log_small.ulg":
        # pyulog's clock is poisoned by one row of `mission` stamped 1194 s in a log of 6.5 s.
        assert [d for _, d in ours] == [d for _, d in theirs]
        assert theirs[0][0] > 1_000_000_000 > ours[0][0]
    else:
        assert ours == theirs


def test_logged_strings_equal_pyulog(path: Path) -> None:
    log, peer = logreel.open(path), flight(path)
    theirs = [(m.timestamp, m.log_level - 0x30, 0, m.message) for m in peer.logged_messages]
    tagged = [m for messages in peer.logged_messages_tagged.values() for m in messages]
    theirs += [(m.timestamp, m.log_level - 0x30, m.tag, m.message) for m in tagged]
    if not theirs:
        assert "~text" not in log
        return
    ch = log["~text"]
    columns = (ch.times // 1000, ch["level"], ch["tag"], ch["text"])
    assert sorted(zip(*(c.tolist() for c in columns), strict=True)) == sorted(theirs)
