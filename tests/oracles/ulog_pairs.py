"""Comparison of logreel with pyulog: ULogs read by both, and ULogs written by logreel read by pyulog."""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path[:0] = [one for one in map(str, Path(__file__).parents[:2]) if one not in sys.path]

import numpy as np  # noqa: E402
import pyulog  # noqa: E402
from rows import Row  # noqa: E402

import logreel  # noqa: E402
from logreel.formats.ulog.clock import UTC_OFFSET  # noqa: E402
from logreel.formats.ulog.definitions import RELEASES, release_number  # noqa: E402
from logreel.log.log import Log  # noqa: E402
from support.samples.ulog.builder import flight, tiny  # noqa: E402

#: How a log is written of which pyulog reads the copy.
WRITERS: Mapping[str, Callable[[Path, Path], Any]] = {
    "slice": lambda source, folder: logreel.slice(source, folder / "a.ulg"),
    "sort": lambda source, folder: logreel.sort(source, folder / "a.ulg"),
    "MCAP and back": lambda source, folder: (
        logreel.convert(source, folder / "a.mcap", raw=True),
        logreel.convert(folder / "a.mcap", folder / "a.ulg"),
    ),
}
#: Why values differ, by ``file | ours | peer``.
EXPLAINED = {
    "sample_log_small.ulg | dropouts | pyulog": (
        "one row of `mission` is stamped 1194 s in a log of 6.5 s, and pyulog gives the dropouts behind it that time"
    ),
    "sample_log_small.ulg | pyulog of sort | *": (
        "sorted, that row comes last, and pyulog gives the dropout the time of the row before it"
    ),
}
Values = dict[Any, Any]


def compare(shared: Path) -> Iterator[Row]:
    """Yield a row for each file and kind of content, and for each file and way to write it."""
    with tempfile.TemporaryDirectory() as folder:
        made = {"flight": flight(10.0), "flight of another seed": flight(5.0, 7), "tiny": tiny()}
        for name, data in made.items():
            (Path(folder) / f"{name}.ulg").write_bytes(data)
        paths = [*sorted((shared / "data" / "ulog").glob("*.ulg")), *sorted(Path(folder).glob("*.ulg"))]
        for path in paths:
            yield from _read(path)
            yield from _written(path)


def _read(path: Path) -> Iterator[Row]:
    log, peer = logreel.open(path), load(path)
    for what, (ours, theirs) in {
        "data": (_our_data(log, peer), _data(peer)),
        "information": (_our_information(log, peer), _information(peer)),
        "information in parts": (_our_parts(log, peer), _parts(peer)),
        "parameters": (_our_parameters(log), _parameters(peer)),
        "defaults": (_our_defaults(log), _defaults(peer)),
        "text": (_our_text(log), _text(peer)),
        "dropouts": (_our_dropouts(log), _dropouts(peer)),
    }.items():
        yield _row(path.name, what, "pyulog", ours, theirs)


def _written(path: Path) -> Iterator[Row]:
    source = load(path)
    for way, write in WRITERS.items():
        with tempfile.TemporaryDirectory() as folder:
            write(path, Path(folder))
            copy = load(Path(folder) / "a.ulg")
            # In a copy, a record may state the UTC offset, so it is compared as read.
            ours: Values = {"utc_offset": logreel.open(Path(folder) / "a.ulg").utc_offset}
        theirs: Values = {"utc_offset": logreel.open(path).utc_offset}
        for n, content in enumerate((_data, _information, _parts, _parameters, _defaults, _text, _dropouts)):
            theirs |= {(n, key): value for key, value in content(source).items()}
            ours |= {(n, key): value for key, value in content(copy).items()}
        if way == "sort":
            # Rows of one time may change places with none of another; those by themselves come by time.
            theirs, ours = ({k: _by_time(v) for k, v in one.items()} for one in (theirs, ours))
        yield _row(path.name, f"pyulog of {way}", "pyulog of the source", ours, theirs)


def load(path: Path) -> Any:
    """Return the log read by pyulog, without its output."""
    with contextlib.redirect_stdout(io.StringIO()):
        return pyulog.ULog(str(path))


def _by_time(value: Any) -> Any:
    return np.sort(value, kind="stable") if isinstance(value, np.ndarray) else value


def _row(file: str, ours: str, peer: str, mine: Values, theirs: Values) -> Row:
    """Return the row of all values of two mappings: arrays compared bit by bit, other things as one value each."""
    compared = equal = 0
    note = ""
    for key in [*theirs, *(key for key in mine if key not in theirs)]:
        a, b = mine.get(key), theirs.get(key)
        size = max(len(one) if isinstance(one, np.ndarray) else 1 for one in (a, b))
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and (a.dtype, len(a)) == (b.dtype, len(b)):
            width = a.dtype.itemsize
            raw = [np.ascontiguousarray(one).view(np.uint8).reshape(-1, width) for one in (a, b)]
            same = int((raw[0] == raw[1]).all(axis=1).sum())
        else:
            same = size if not isinstance(a, np.ndarray) and a == b and key in mine and key in theirs else 0
        compared, equal = compared + size, equal + same
        note = note or (f"{key}: {a!s:.60} | {b!s:.60}" if same < size else "")
    return Row("ulog", file, ours, peer, compared, equal, note)


# ---------------------------------------------------------------------------------------------------- data


def _topic(data: Any) -> str:
    return f"{data.name}[{data.multi_id}]" if data.multi_id else str(data.name)


def _data(peer: Any) -> Values:
    # Padding holds nothing. Of a bool any byte but 0 is true; PX4 writes 0x99 where a value was never set.
    return {
        (_topic(data), f.field_name): data.data[f.field_name] != 0 if f.type_str == "bool" else data.data[f.field_name]
        for data in peer.data_list
        for f in data.field_data
        if "_padding" not in f.field_name
    }  # fmt: skip


def _our_data(log: Log, peer: Any) -> Values:
    """Return the same fields by topic and name, and the times of topics that pyulog does not have."""
    fields = {_topic(data): data for data in peer.data_list}
    found: Values = {}
    for topic, ch in log.channels.items():
        if len(ch) and not ch.reserved and topic not in fields:
            found[topic, "timestamp"] = ch.times
        elif topic in fields:
            names = [f.field_name for f in fields[topic].field_data]
            found |= {(topic, name): ch[name] for name in names if "_padding" not in name}
    return found


# --------------------------------------------------------------------------------------------- information


def _information(peer: Any) -> Values:
    """Return all information messages but that of logreel with the UTC offset, which is no metadata."""
    return {name: value for name, value in peer.msg_info_dict.items() if name != UTC_OFFSET}


def _our_information(log: Log, peer: Any) -> Values:
    types = log.metadata.get("ulog", {}).get("types", {})
    metadata = {name: log.metadata[name] for name in types if not _is_in_parts(log.metadata[name])}
    for name, theirs in peer.msg_info_dict.items():
        if name in metadata and isinstance(theirs, bytes) and not isinstance(metadata[name], bytes):
            # pyulog returns arrays as bytes.
            kind = types[name].partition("[")[0]
            metadata[name] = (
                np.array(metadata[name], _NUMPY[kind]).tobytes() if kind in _NUMPY else metadata[name]
            )
        elif name in RELEASES and name in metadata:
            metadata[name] = release_number(metadata[name])
    return metadata


_NUMPY = {
    "float": "<f4", "double": "<f8", "int8_t": "i1", "uint8_t": "u1", "int16_t": "<i2", "uint16_t": "<u2",
    "int32_t": "<i4", "uint32_t": "<u4", "int64_t": "<i8", "uint64_t": "<u8", "bool": "?",
}  # fmt: skip


def _is_in_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, list) for entry in value)


def _parts(peer: Any) -> Values:
    return dict(peer.msg_info_multiple_dict)


def _our_parts(log: Log, peer: Any) -> Values:
    """Return lists of lists; bytes from attachments, divided like the original parts."""
    found = {name: value for name, value in log.metadata.items() if _is_in_parts(value)}
    for name, theirs in peer.msg_info_multiple_dict.items():
        if name in found:
            # pyulog decodes each part by itself and drops a letter that was cut in two.
            pairs = zip(found[name], theirs, strict=False)
            whole = ["".join(a) == "".join(b) for a, b in pairs if isinstance(a[0], str)]
            cut = [
                [_cut(a, b) for a, b in zip(*both, strict=False)]
                for both in zip(found[name], theirs, strict=False)
            ]
            found[name] = cut if whole and not all(whole) else found[name]
            continue
        sizes = log.metadata["ulog"]["parts"].get(name, []) if "ulog" in log.metadata else []
        found[name] = [list(entry) for entry in _binary(log, name, sizes)]
    return found


def _cut(ours: str, theirs: str) -> str:
    """Return *ours* as pyulog has it, if they differ only in characters at the ends."""
    return theirs if theirs and theirs.strip("\ufffd") in ours else ours


def _binary(log: Log, name: str, sizes: list[list[int]]) -> Iterator[Iterator[bytes]]:
    for n, entry in enumerate(sizes):
        label = name if len(sizes) == 1 else f"{name}-{n}"
        data = next(a.read() for file, a in log.attachments.items() if file.rpartition(".")[0] == label)
        ends = np.cumsum([0, *entry]).tolist()
        yield (data[lo:hi] for lo, hi in itertools.pairwise(ends))


# ---------------------------------------------------------------------------------- parameters, text, dropouts


def _parameters(peer: Any) -> Values:
    changes: Values = {}
    for time, name, value in peer.changed_parameters:
        changes.setdefault(("change", name), []).append((time, value))
    return {("initial", name): value for name, value in peer.initial_parameters.items()} | changes


def _our_parameters(log: Log) -> Values:
    ours = log.parameters
    found: Values = {("initial", name): p.value for name, p in ours.items() if p.value is not None}
    changes = {("change", name): [(c.time // 1000, c.value) for c in p.changes] for name, p in ours.items()}
    return found | {key: value for key, value in changes.items() if value}


def _defaults(peer: Any) -> Values:
    if not peer.has_default_parameters:
        return {}
    kinds = enumerate(("system", "setup"))
    return {(kind, n): value for bit, kind in kinds for n, value in peer.get_default_parameters(bit).items()}


def _our_defaults(log: Log) -> Values:
    return {(kind, name): v for name, p in log.parameters.items() for kind, v in p.defaults.items()}


def _text(peer: Any) -> Values:
    lines = [(m.timestamp, m.log_level - 0x30, 0, m.message) for m in peer.logged_messages]
    lines += [
        (m.timestamp, m.log_level - 0x30, m.tag, m.message)
        for messages in peer.logged_messages_tagged.values()
        for m in messages
    ]
    return dict(enumerate(sorted(lines)))


def _our_text(log: Log) -> Values:
    if "~text" not in log:
        return {}
    ch = log["~text"]
    columns = (ch.times // 1000, ch["level"], ch["tag"], ch["text"])
    return dict(enumerate(sorted(zip(*(c.tolist() for c in columns), strict=True))))


def _dropouts(peer: Any) -> Values:
    return dict(enumerate((d.timestamp, d.duration) for d in peer.dropouts))


def _our_dropouts(log: Log) -> Values:
    if "~dropout" not in log:
        return {}
    ch = log["~dropout"]
    return dict(enumerate(zip((ch.times // 1000).tolist(), ch["duration"].tolist(), strict=True)))
