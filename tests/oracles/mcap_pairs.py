"""MCAP: the mcap library and its decoders read what logreel writes, and logreel reads what the library writes."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rows import Row

import logreel
from logreel.errors import LogError

#: Files of every format that can be converted.
SOURCES = (
    "bddf/*.bddf",
    "carla/**/*.log",
    "koblenz/*.log",
    "rosbag/*.bag",
    "ulog/*.ulg",
    "rosbag2/**/*.mcap",
)
#: Decoding in Python is slow: so many messages of each channel are compared.
DECODED = 10
#: And so many messages of each file are written by the library, which takes its time.
WRITTEN = 2000
#: The library's reader of records reads only files below so many bytes once more.
STREAMED = 1 << 20
EXPLAINED = {
    "syn_v0_star.bag | rosbag to mcap, decoded | mcap-ros1-support": (
        "the bag says * in the place of a type: there is no definition that the peer could make a class of"
    ),
    "v20_empty_msgdef_zero_data.bag | rosbag to mcap, decoded | mcap-ros1-support": (
        "the definition in the bag is empty and not that of its type: raw bytes here, a message without fields there"
    ),
}

Rows = list[tuple[str, int, int, int, bytes]]


def compare(shared: Path) -> Iterator[Row]:
    """A row for each sample below ``data`` of *shared* and each pair; none where there are none."""
    data = shared / "data"
    for path in sorted({path for pattern in SOURCES for path in data.glob(pattern)}):
        for pair in (_raw, _default, _by_library):
            yield from _guarded(path, pair)
    for path in sorted((data / "rosbag2").glob("**/*.mcap")):
        yield from _guarded(path, _rosbag2)


def _guarded(path: Path, pair: Callable[[Path], Iterator[Row]]) -> Iterator[Row]:
    """Rows of one file; an exception is a row, too."""
    try:
        yield from pair(path)
    except LogError as error:
        # What cannot be opened, or holds nothing to convert, is compared by those who know the format.
        yield Row("mcap", path.name, f"logreel {pair.__name__}", "", 0, 0, error.text)
    except Exception as error:
        yield Row("mcap", path.name, f"logreel {pair.__name__}", "", 1, 0, f"{type(error).__name__}: {error}")


def _row(file: str, ours: str, peer: str, mine: Iterable[Any], theirs: Iterable[Any]) -> Row:
    """Compare two collections in any order; the note shows one that only one of them has."""
    a, b = Counter(mine), Counter(theirs)
    both = (a & b).total()
    note = ""
    for what, left in (("only ours", a - b), ("only the peer's", b - a)):
        if left and not note:
            note = f"{what}: {str(next(iter(left)))[:160]}"
    return Row("mcap", file, ours, peer, max(a.total(), b.total()), both, note)


# ---------------------------------------------------------------------------------------------- reading


def _ours(log: logreel.Log) -> Rows:
    found, index = Rows(), log.index
    for ch in log.channels.values():
        more = [index.side_column(ch.number, name) for name in ("publish_time", "sequence")]
        beside = zip(*(range(0) if one is None else one.tolist() for one in more), strict=True)
        topic = str(ch.metadata.get("topic", ch.topic))
        for m, (publish, sequence) in zip(log.messages(ch.topic, order="file"), beside, strict=True):
            found.append((topic, m.time, publish, sequence, bytes(m.data)))
    return found


def _librarys(data: bytes) -> Rows:
    from mcap.reader import make_reader

    reader = make_reader(io.BytesIO(data), validate_crcs=True)
    return [
        (channel.topic, m.log_time, m.publish_time, m.sequence, m.data)
        for _, channel, m in reader.iter_messages(log_time_order=False)
    ]


def _streamed(data: bytes) -> Rows:
    """The same from its reader of records, which uses no index."""
    from mcap.records import Channel, Message
    from mcap.stream_reader import StreamReader

    topics: dict[int, str] = {}
    found = Rows()
    for one in StreamReader(io.BytesIO(data), validate_crcs=True).records:
        if isinstance(one, Channel):
            topics[one.id] = one.topic
        elif isinstance(one, Message):
            found.append((topics[one.channel_id], one.log_time, one.publish_time, one.sequence, one.data))
    return found


def _converted(path: Path, raw: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = Path(folder) / "out.mcap"
        logreel.convert(path, out, raw=raw)
        return out.read_bytes()


# ----------------------------------------------------------------------------------------------- writing


def _raw(path: Path) -> Iterator[Row]:
    """Messages of the source, as the library reads them in what was converted byte for byte."""
    data = _converted(path, True)
    log = logreel.open(path)
    topics = {ch.topic: str(ch.metadata.get("topic", ch.topic)) for ch in log.channels.values()}
    due = [
        (topics[m.channel.topic], m.time, bytes(m.data))
        for m in log.messages(list(log.channels), order="file")
    ]
    held = [one for one in due if one[1] >= 0]
    for peer, read in (("mcap reader", _librarys), ("mcap stream reader", _streamed)):
        if read is _streamed and len(data) > STREAMED:
            continue
        got = [(topic, time, payload) for topic, time, _, _, payload in read(data)]
        yield _row(path.name, f"{log.format} to mcap, raw", peer, held, got)


def _default(path: Path) -> Iterator[Row]:
    """What is converted for other tools: read by logreel, the library and its decoders."""
    data = _converted(path, False)
    log, ours = logreel.open(data), f"{logreel.open(path).format} to mcap"
    mine = _ours(log)
    yield _row(path.name, ours, "mcap reader", mine, _librarys(data))
    for peer, encoding, factory in _decoders():
        if any(ch.schema.encoding == encoding for ch in log.channels.values()):
            yield from _decoded(path.name, f"{ours}, decoded", log, data, peer, encoding, factory)


@cache
def _decoders() -> tuple[tuple[str, str, Callable[[], Any]], ...]:
    from mcap_protobuf.decoder import DecoderFactory as Protobuf
    from mcap_ros1.decoder import DecoderFactory as Ros1

    return ("mcap-ros1-support", "ros1msg", Ros1), ("mcap-protobuf-support", "protobuf", Protobuf)


def _decoded(
    file: str,
    ours: str,
    log: logreel.Log,
    data: bytes,
    peer: str,
    encoding: str,
    factory: Callable[[], Any],
) -> Iterator[Row]:
    """The first messages of each channel, field by field."""
    from mcap.reader import make_reader

    mine, theirs = list[Any](), list[Any]()
    reader = make_reader(io.BytesIO(data), decoder_factories=[factory()])
    seen = Counter[int]()
    wanted = {
        (str(ch.metadata.get("topic", ch.topic)), ch.schema.name): ch
        for ch in log.channels.values()
        if ch.schema.encoding == encoding
    }
    for schema, channel, m in reader.iter_messages(log_time_order=False):
        seen[channel.id] += 1
        if schema is None or schema.encoding != encoding or seen[channel.id] > DECODED:
            continue
        ch = wanted[channel.topic, schema.name]
        try:
            decoder = _decoder_of(factory, channel.message_encoding, schema)
            theirs.append((channel.topic, seen[channel.id], repr(_plain(decoder(m.data)))))
        except Exception as error:
            theirs.append((channel.topic, seen[channel.id], f"{type(error).__name__}: {error}"))
        mine.append((channel.topic, seen[channel.id], repr(_plain(ch.decode(m.data, 0)))))
    yield _row(file, ours, peer, mine, theirs)


_MADE: dict[tuple[str, int, str], Any] = {}


def _decoder_of(factory: Callable[[], Any], encoding: str, schema: Any) -> Any:
    key = encoding, hash(schema.data), schema.name
    if key not in _MADE:
        _MADE[key] = factory().decoder_for(encoding, schema)
    return _MADE[key]


def _plain(value: Any) -> Any:
    """A message of any library as plain values: times as ns, bytes as lists, numbers as they are."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return list(bytes(value))
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if hasattr(value, "DESCRIPTOR"):
        if value.DESCRIPTOR.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            return value.seconds * 10**9 + value.nanos
        return {f.name: _field(value, f) for f in value.DESCRIPTOR.fields}
    if hasattr(value, "__slots__") and {"secs", "nsecs"} <= set(dir(value)):
        return value.secs * 10**9 + value.nsecs
    if hasattr(value, "__slots__"):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return [_plain(one) for one in value]


def _field(message: Any, field: Any) -> Any:
    """A field of a protobuf message: one that was not set is None where that can be told, an enum its name."""
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        return [names[n].name for n in value] if field.is_repeated else names[value].name
    return _plain(value)


# ---------------------------------------------------------------------------------------- the other way


def _by_library(path: Path) -> Iterator[Row]:
    """The messages of a sample, written by the library in several ways and read by logreel."""
    from mcap.writer import CompressionType, IndexType, Writer

    log = logreel.open(path)
    some = list(
        itertools.islice((m for m in log.messages(list(log.channels), order="file") if m.time >= 0), WRITTEN)
    )
    for compression, chunked, index, sums in (
        (CompressionType.ZSTD, True, IndexType.ALL, True),
        (CompressionType.LZ4, True, IndexType.ALL, False),
        (CompressionType.NONE, True, IndexType.NONE, True),
        (CompressionType.NONE, False, IndexType.ALL, False),
    ):
        out = io.BytesIO()
        writer = Writer(
            out,
            chunk_size=1 << 14,
            compression=compression,
            index_types=index,
            use_chunking=chunked,
            use_statistics=sums,
            repeat_channels=sums,
            repeat_schemas=sums,
            enable_crcs=sums,
        )
        writer.start()
        numbers = {}
        for ch in log.channels.values():
            encoding = ch.schema.encoding or "bytes"
            schema = writer.register_schema(ch.schema.name or "none", encoding, bytes(ch.schema.raw))
            numbers[ch.topic] = writer.register_channel(ch.topic, "bytes", schema)
        due = Rows()
        for n, m in enumerate(some):
            row = m.channel.topic, m.time, m.time + n, n, bytes(m.data)
            writer.add_message(numbers[row[0]], row[1], row[4], row[2], row[3])
            due.append(row)
        writer.finish()
        data = out.getvalue()
        how = f"mcap writer, {compression.name.lower()}{'' if chunked else ', no chunks'}"
        how += ("" if index is IndexType.ALL else ", no index") + ("" if sums else ", nothing repeated")
        yield _row(path.name, "logreel.open", how, _ours(logreel.open(data)), due)
        problems = logreel.open(data).problems
        wrong = [p.text for p in problems] + [f.text for f in logreel.open(data).verify()]
        yield Row("mcap", path.name, "logreel: sound", how, 1, int(not wrong), "; ".join(wrong)[:200])


def _rosbag2(path: Path) -> Iterator[Row]:
    """MCAPs of ROS 2: the same rows, and the same fields as rosbags decodes them."""
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

    data = path.read_bytes()
    log = logreel.open(path)
    mine = _ours(log)
    yield _row(path.name, "logreel.open", "mcap reader", mine, _librarys(data))
    yield _row(path.name, "logreel.open", "mcap stream reader", mine, _streamed(data))
    store = get_typestore(Stores.EMPTY)
    known = set[str]()
    for ch in log.channels.values():
        if ch.schema.encoding == "ros2msg":
            # What rosbags cannot parse, such as the events of services, it cannot judge either.
            with contextlib.suppress(TypesysError):
                found = get_types_from_msg(ch.schema.text, ch.schema.name)
                store.register({name: one for name, one in found.items() if name not in store.types})
                known.add(ch.topic)
    ours, theirs = list[str](), list[str]()
    if path != min(path.parent.glob("*.mcap")):
        # rosbags reads folders as a whole: once, for the first of its files.
        return
    logs = [logreel.open(one) for one in sorted(path.parent.glob("*.mcap"))]
    with Reader(path.parent) as reader:
        for connection, time, raw in reader.messages([c for c in reader.connections if c.topic in known]):
            found = store.deserialize_cdr(raw, connection.msgtype)
            theirs.append(repr((connection.topic, time, _rosbags(found))))
    for one in logs:
        for m in one.messages():
            if m.channel.topic in known:
                ours.append(repr((m.channel.topic, m.time, _plain(m.decode()))))
    yield _row(path.parent.name, "logreel.open, decoded", "rosbags", ours, theirs)


def _rosbags(value: Any) -> Any:
    """A message of rosbags as plain values."""
    if dataclasses.is_dataclass(value):
        # Constants are none of the fields.
        names = [f.name for f in dataclasses.fields(value) if f.default is dataclasses.MISSING]
        if names == ["sec", "nanosec"]:
            return value.sec * 10**9 + value.nanosec
        return {
            name: _rosbags(getattr(value, name))
            for name in names
            if name != "structure_needs_at_least_one_member"
        }
    if isinstance(value, list):
        return [_rosbags(one) for one in value]
    return _plain(value)
