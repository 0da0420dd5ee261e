"""Building of the Scan of the database of a bag.

Payloads are in pages, most of them in parts. So the messages of about a megabyte are a chunk of the index, which is
put together, and unpacked where messages are compressed, when its bytes are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError, Finding, LogError, Problem
from logreel.formats.rosbag2 import yaml
from logreel.formats.rosbag2.folder import custom_of
from logreel.formats.rosbag2.reader import ZSTD, Database, DatabaseReader, StoredDefinition, TopicRow
from logreel.index.channel_index import ChannelRules, StoredValues
from logreel.index.growing_table import GrowingTable
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Buffer, ChunkCache, Chunks, Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.scan import ChannelInfo, Noted, PayloadDecoder, Scan, Schema
from logreel.registry.format import free_name
from logreel.schemas.languages import Hints, language_of
from logreel.write.format_writer import joined

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")
#: Bytes of messages that are put together at once.
CHUNK = 4 << 20
#: Earlier times (1973 if they counted from 1970) are relative to the start of the recording, or simulated.
RELATIVE_NS = 10**8 * 10**9
#: Longest head of a zstd frame.
_FRAME_HEAD = 18
CDR = "cdr"


@dataclass(slots=True)
class Bag:
    """A database with what its messages have when they are unpacked.

    packed  bool[n]: whether a message is a zstd frame
    size    int64[n]: bytes of each message as the index has it
    first   int64[c + 1]: first message of each chunk, and the number of all
    """

    source: Source
    file: Database
    packed: NDArray[np.bool_]
    size: I64
    first: I64


def scan(source: Source) -> Scan:
    """Return the Scan of a database; raise LogError for one that is no database of rosbag2, or while it is written."""
    reader = DatabaseReader(source)
    # Pages come one after another, the first one first, also from writers without locks.
    if source.grows and reader.pages.stated_count > reader.pages.count:
        raise LogError("a transaction is being written", path=source.name)
    bag = _bag(source, reader.read())
    file, messages, problems = bag.file, bag.file.messages, bag.file.problems
    topics = file.topics
    # Of two rows with one number the first counts.
    number_of = {topic.id: n for n, topic in reversed(list(enumerate(topics)))}
    ids = np.array(sorted(number_of), np.int64)
    numbers = np.array([number_of[topic] for topic in ids.tolist()], np.int64)
    if len(ids) < 1 << 15:
        # These are sorted in one pass.
        numbers = numbers.astype(np.int16)
    channel = numbers[np.searchsorted(ids, messages.topic)] if len(messages) else messages.topic
    index = _index(bag, channel, len(topics))
    start, end = (int(messages.time.min()), int(messages.time.max())) if len(messages) else (None, None)
    epoch = "unix" if end is None or end >= RELATIVE_NS else "start"
    return Scan(
        version=str(file.schema_version),
        epoch=epoch,
        start=start,
        end=end,
        channels=_channels(bag),
        index=index,
        problems=problems,
        metadata=partial(_metadata, bag),
        verify=partial(_verify, bag),
        utc_offset=lambda: 0 if epoch == "unix" else None,
        format_state=bag,
    )


def _verify(bag: Bag) -> Iterator[Finding]:
    """Yield where the index of times and the messages differ; compressed messages are unpacked.

    SQLite writes each time twice, so a changed one, and a row that is gone without a trace, are noticed here.
    """
    file = bag.file
    if bag.packed.any():
        noted = Noted()
        for chunk in range(len(bag.first) - 1):
            # What is damaged becomes a Problem of the log.
            unpack(bag, noted, chunk)
    if file.time_index is None:
        yield Finding("index", "note", None, 0, "there is no index of times: damaged times are not noticed")
        return
    time, rowid, is_sound = file.pages.index_rows(file.time_index)
    if not is_sound:
        yield Finding("index", "warn", None, 0, "the index of times is damaged")
    order = np.argsort(rowid, kind="stable")
    time, rowid = time[order], rowid[order]
    missing = ~np.isin(rowid, file.messages.rowid)
    if missing.any():
        text = f"{missing.sum()} messages that the index of times lists are not in the table"
        yield Finding("index", "error", None, 0, text, count=int(missing.sum()))
    unknown = ~np.isin(file.messages.rowid, rowid)
    if unknown.any() and is_sound:
        text = f"{unknown.sum()} messages are not in the index of times"
        yield Finding("index", "error", None, 0, text, count=int(unknown.sum()))
    both = np.flatnonzero(~unknown)
    stated = time[np.searchsorted(rowid, file.messages.rowid[both])] if len(rowid) else time
    other = both[stated != file.messages.time[both]]
    if len(other):
        text = f"{len(other)} messages have other times in the index: some of them are damaged"
        at = int(file.messages.begin[other[0]])
        yield Finding("index", "error", at, 0, text, count=len(other))


def _bag(source: Source, file: Database) -> Bag:
    """Return the database with the sizes of its messages; compressed ones of unknown size are left out as Problems."""
    from logreel.io import zstd

    messages, data = file.messages, file.pages.data
    packed = np.zeros(len(messages), np.bool_)
    if not file.is_plain:
        known = messages.local >= 4
        packed = (file.pages.numbers(np.where(known, messages.begin, 0), 4) == ZSTD) & known
    plain = np.array([topic.id for topic in file.topics if topic.serialization_format == CDR], np.int64)
    if packed.any() and not packed.all():
        # Whatever the topic, where the bag says so.
        mode = metadata_of(file.metadata).get("compression_mode")
        packed &= np.isin(messages.topic, plain) | (str(mode).lower() == "message")
    size, bad = messages.size.copy(), list[int]()
    view = data.data
    for row in np.flatnonzero(packed).tolist():
        begin, local = int(messages.begin[row]), int(min(messages.local[row], messages.size[row]))
        try:
            stated = zstd.stated_size(view[begin : begin + min(local, _FRAME_HEAD)])
        except zstd.ZstdError:
            stated = None
        if stated is None or stated > source.limits.unpacked(stated, int(messages.size[row])):
            bad.append(row)
        else:
            size[row] = stated
    if bad:
        lost = int(messages.size[bad].sum())
        text = f"{len(bad)} compressed messages state no size, or one beyond the limits chunk_bytes and chunk_ratio"
        file.pages.note("payload", messages.begin[bad[0]], lost, True, text)
        keep = np.ones(len(messages), np.bool_)
        keep[bad] = False
        file.messages, packed, size = messages.at(keep), packed[keep], size[keep]
    before = np.cumsum(size) - size
    group = before // CHUNK
    first = np.flatnonzero(np.diff(group, prepend=-1)).astype(np.int64)
    return Bag(source, file, packed, size, np.append(first, len(size)))


def _index(bag: Bag, channel: I64, channels: int) -> MessageIndex:
    file, first = bag.file, bag.first
    table = GrowingTable(time=np.int64, size=np.uint32)
    table.declare(channels)
    before = np.cumsum(bag.size) - bag.size
    for chunk, (lo, hi) in enumerate(zip(first[:-1].tolist(), first[1:].tolist(), strict=True)):
        entry = (before[lo:hi] - before[lo]).astype(np.uint32)
        table.add(
            0,
            chunk,
            channel[lo:hi],
            entry,
            time=file.messages.time[lo:hi],
            size=bag.size[lo:hi].astype(np.uint32),
        )
    sizes = np.add.reduceat(bag.size, first[:-1].astype(np.intp)).tolist() if len(bag.size) else []
    chunks = Chunks(
        bag.source,
        ChunkCache(partial(unpack, bag, Noted()), sizes, False, bag.source.limits),
        sizes.__getitem__,
        # The first page of messages moves when a growing table gets its second one.
        lambda n: int(file.messages.begin[first[n]]) if n else 0,
    )
    rules = ChannelRules(StoredValues(table.column("time")), StoredValues(table.column("size")))
    return MessageIndex(chunks, table.blocks(channels), [rules] * channels, sizes_are_cheap=True)


def unpack(bag: Bag, noted: Noted, chunk: int) -> Buffer:
    """Return the messages of a chunk, one after another."""
    lo, hi = int(bag.first[chunk]), int(bag.first[chunk + 1])
    start, size = stored_pieces(bag.file, lo, hi)
    data = joined(bag.file.pages.data, start, size)
    if not bag.packed[lo:hi].any():
        return data
    from logreel.io import zstd

    messages, out, at, place = bag.file.messages, np.zeros(int(bag.size[lo:hi].sum()), np.uint8), 0, 0
    for row in range(lo, hi):
        stored, unpacked = data[at : at + int(messages.size[row])], int(bag.size[row])
        at += len(stored)
        if bag.packed[row]:
            try:
                content = np.frombuffer(zstd.unpack(stored.data), np.uint8)
                wrong = (
                    ""
                    if len(content) == unpacked
                    else f"it has {len(content)} bytes where {unpacked} are stated"
                )
            except zstd.ZstdError as error:
                content, wrong = np.zeros(0, np.uint8), str(error)
            if wrong:
                text = f"a compressed message is damaged: {wrong}"
                problem = Problem("payload", int(messages.begin[row]), len(stored), True, text)
                noted.add(bag.file.problems, problem)
            stored = content[:unpacked]
        out[place : place + len(stored)] = stored
        place += unpacked
    return out


def stored_pieces(file: Database, lo: int, hi: int) -> tuple[I64, I64]:
    """Return offset and bytes of each piece of messages *lo* … *hi*, in the order of their bytes."""
    messages, pages = file.messages, file.pages
    here = slice(lo, hi)
    size, local, begin = messages.size[here], messages.local[here], messages.begin[here]
    room = pages.usable - 4
    count = np.maximum(0, -((local - size) // room))
    if not count.any():
        return begin, size
    # A piece in the leaf, then a piece in each page of the chain.
    parts = count + 1
    row = np.repeat(np.arange(hi - lo), parts)
    number = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
    page = messages.chain[here][row] + number - 1
    for rowid in set(messages.rowid[here].tolist()) & file.chains.keys():
        at = int(np.flatnonzero(messages.rowid[here] == rowid)[0])
        page[(row == at) & (number > 0)] = file.chains[rowid]
    start = np.where(number == 0, begin[row], (page - 1) * pages.size + 4)
    rest = np.minimum(room, (size - local)[row] - (number - 1) * room)
    return start, np.where(number == 0, np.minimum(local, size)[row], rest)


# ------------------------------------------------------------------------------------------------------------ channels


def _channels(bag: Bag) -> list[ChannelInfo]:
    file, taken, made = bag.file, set[str](), list[ChannelInfo]()
    definitions = _Definitions(bag)
    for topic in file.topics:
        name = free_name(topic.name, taken)
        taken.add(name)
        metadata: dict[str, Any] = {"message_encoding": topic.serialization_format or CDR}
        if name != topic.name:
            metadata["topic"] = topic.name
        if topic.offered_qos_profiles:
            metadata["offered_qos_profiles"] = topic.offered_qos_profiles
        if topic.type_description_hash:
            metadata["topic_type_hash"] = topic.type_description_hash
        schema = definitions.schema(name, topic)
        find = partial(definitions.find, name, topic, schema)
        made.append(
            ChannelInfo(name, schema, lambda find=find: find()[0], metadata, lambda find=find: find()[1])  # type: ignore[misc]
        )
    return made


class _Definitions:
    """Schemas and Layouts of the topics of a bag; what cannot be used is a Problem once."""

    def __init__(self, bag: Bag) -> None:
        self._bag, self._noted = bag, Noted()
        self._hints = Hints(tuple(bag.source.definitions), note=self._note)
        self._found: dict[str, tuple[Layout, PayloadDecoder | None]] = {}

    def schema(self, name: str, topic: TopicRow) -> Schema:
        """Return the schema of a topic: of the bag, else a known one, or what the user gave."""
        stated = self._stated(topic)
        encoding, text = ("ros2msg", "") if stated is None else (stated.encoding, stated.text)
        schema = Schema(topic.type, encoding if text else "ros2msg", text)
        if not topic.type or topic.serialization_format not in ("", CDR):
            return schema
        language = language_of(schema, CDR)
        type_name = self._bag.source.types.get(name)
        if language is None or (text and type_name is None):
            return schema
        return language.complete(language.given(schema, type_name, self._hints)[0])

    def _stated(self, topic: TopicRow) -> StoredDefinition | None:
        """Return the definition of the type of a topic, by its hash if it has one; that of events is the service's."""
        known = self._bag.file.definitions
        names = [topic.type, topic.type.removesuffix("_Event")]
        keys = [(name, digest) for name in names for digest in (topic.type_description_hash, "")]
        return next((known[key] for key in keys if key in known), None)

    def find(self, name: str, topic: TopicRow, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        """Return Layout and PayloadDecoder of the messages of a topic."""
        if name not in self._found:
            try:
                self._found[name] = self._make(topic, schema)
            except DefinitionError as error:
                self._note(f"{name}: {error.text}; its messages are raw bytes")
                self._found[name] = RAW, None
        return self._found[name]

    def _make(self, topic: TopicRow, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        encoding = topic.serialization_format or CDR
        from logreel.schemas import ros2msg
        from logreel.schemas.ros2msg import SAMPLE_BYTES, encapsulation_of

        language = language_of(schema, encoding)
        if language is None:
            raise DefinitionError(
                f"nothing reads messages in {encoding!r:.60} with a schema in {schema.encoding!r:.60}"
            )
        # The definition of a type without fields has no text.
        if not schema.text and self._stated(topic) is None and not ros2msg.is_known(topic.type):
            raise DefinitionError(f"nothing defines {schema.name[:80] or 'its type'}")
        begin = encapsulation_of(self._first(topic, 2)) if language.encoding == CDR else b""
        hints = replace(self._hints, encapsulation=begin, samples=lambda: self._first(topic, SAMPLE_BYTES))
        layout = language.layout(schema, hints)
        if layout is not None:
            return layout, None
        decoder = language.decoder(schema, hints)
        if decoder is None:
            raise DefinitionError(f"nothing reads messages of {schema.name[:80]}")
        return decoder.layout, decoder

    def _first(self, topic: TopicRow, most: int) -> Iterator[bytes]:
        """Yield the first messages of a topic; *most*: bytes of each, about."""
        from logreel.io import zstd
        from logreel.schemas.ros2msg import LOOKED_AT

        bag = self._bag
        messages, data = bag.file.messages, bag.file.pages.data
        # Most topics have messages near the front.
        few = np.flatnonzero(messages.topic[: 1 << 16] == topic.id)
        rows = few if len(few) else np.flatnonzero(messages.topic == topic.id)
        for row in rows[:LOOKED_AT].tolist():
            start, size = stored_pieces(bag.file, row, row + 1)
            if most <= size[0] and not bag.packed[row]:
                yield data[start[0] : start[0] + most].tobytes()
                continue
            stored = joined(data, start, size).data
            with suppress(zstd.ZstdError):
                yield (zstd.unpack(stored) if bag.packed[row] else stored.tobytes())[:most]

    def _note(self, text: str) -> None:
        self._noted.add(self._bag.file.problems, Problem("definition", 0, 0, False, text))


def _metadata(bag: Bag) -> Mapping[str, Any]:
    file = bag.file
    values: dict[str, Any] = {}
    if file.distro:
        values["ros_distro"] = file.distro
    facts: dict[str, Any] = {
        "storage": "sqlite3",
        "schema_version": file.schema_version,
        "page_bytes": file.pages.size,
        "compression": "message" if len(bag.packed) and bag.packed.all() else "none",
    }
    if file.metadata:
        stated = metadata_of(file.metadata)
        facts |= {"metadata_version": stated.get("version")}
        values |= custom_of(stated)
    return {**values, "rosbag2": facts}


def metadata_of(text: str) -> dict[str, Any]:
    """Return the metadata of a bag in a text of YAML; empty if it cannot be read."""
    try:
        stated = yaml.parse(text)
    except LogError:
        return {}
    if isinstance(stated, dict) and isinstance(inner := stated.get("rosbag2_bagfile_information"), dict):
        stated = inner
    return stated if isinstance(stated, dict) else {}
