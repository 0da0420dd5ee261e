"""Write databases of bags of ROS 2 (``.db3``), with definitions and metadata, as ``ros2 bag record`` writes them.

``page_writer.py`` makes the pages, ``folder.py`` the text of the metadata. SQLite is not asked to write: it changes
pages that it has written, which a stream cannot.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError, LogError, UnsupportedError, UsageError
from logreel.formats.rosbag2.folder import (
    METADATA,
    NEVER,
    OWN,
    FileSpan,
    file_text,
    metadata_text,
    version_for,
)
from logreel.formats.rosbag2.folder import (
    folder as bag_folder,
)
from logreel.formats.rosbag2.page_writer import (
    LARGEST,
    MOST_MESSAGES,
    MOST_TOPICS,
    PAGE,
    DatabasePages,
    Value,
)
from logreel.formats.rosbag2.reader import TopicRow
from logreel.formats.rosbag2.scan_builder import Bag
from logreel.formats.rosbag2.wal import refuse_transactions
from logreel.io import zstd
from logreel.io.append_file import ACTIVE, Appender
from logreel.io.arrays import I64
from logreel.io.atomic_file import replace_text
from logreel.io.source import Buffer, Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import String
from logreel.layout.numpy_columns import TIME, Column, from_values
from logreel.log.log import Channel, Log
from logreel.log.scan import Schema
from logreel.registry.commands import Command, Content, Example
from logreel.registry.new_folder import NewFolder
from logreel.registry.open import open_log
from logreel.schemas import ros1msg, ros2msg
from logreel.schemas.languages import complete, language_named
from logreel.write.format_writer import (
    Abilities,
    FormatWriter,
    Payloads,
    SchemaMaker,
    TextChannel,
    TextColumns,
    topic_without_number,
)
from logreel.write.log_copier import LogCopier
from logreel.write.writer import create

if TYPE_CHECKING:
    from logreel.schemas.ros1to2 import Conversion

CDR = "cdr"
#: Compressions of messages, their level, and the bytes of messages that are packed at once.
COMPRESSIONS, LEVEL, _PACKED_AT_ONCE = ("none", "zstd"), 3, 1 << 20
#: Suffix of packed files; values of ``compression_mode``.
PACKED, FILE, MESSAGE = ".zstd", "file", "message"
#: Values of ``storage``: in what the files of a folder are, with their suffixes.
SQLITE, MCAP = "sqlite3", "mcap"
STORAGES = {SQLITE: ".db3", MCAP: ".mcap"}
#: Metadata of a log that files in MCAP do not have.
DESCRIBED = ("ros_distro", "custom_data")
#: Most files of a folder; bytes of a message in tables and index besides its own; bytes that are compared at once.
MOST_FILES, _ROW_BYTES, _PIECE = 10_000, 36, 1 << 20
#: Languages of definitions that bags of ROS 2 have.
ENCODING, LANGUAGES = "ros2msg", ("ros2msg", "ros2idl")
TYPE = re.compile(r"[A-Za-z]\w*/(?:msg/|srv/|action/)?[A-Za-z]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A channel as it is written.

    row         of the table ``topics``
    defined     type whose definition it has: that of the service, for its events
    schema      with the definition, a known one if none is given
    """

    row: TopicRow
    defined: str
    schema: Schema


def declare(number: int, topic: str, schema: Schema, metadata: Mapping[str, Any], copied: bool) -> NewTopic:
    """Return the channel to be written; raise DefinitionError or UsageError for one that a bag cannot contain.

    copied  True: it is of a bag of ROS 2, and may be what that had: unknown types, messages in another encoding
    """
    encoding = metadata.get("message_encoding")
    if not isinstance(encoding, str):
        encoding = CDR
    if not copied and (schema.encoding not in LANGUAGES or encoding != CDR):
        what = f"messages in {encoding!r:.40} with a schema in {schema.encoding!r:.40}"
        raise DefinitionError(f"channel {topic!r}: a bag of ROS 2 holds messages in 'cdr', not {what}")
    if not copied and not TYPE.fullmatch(schema.name):
        raise DefinitionError(f"{schema.name!r:.80} is no type of ROS 2, which look like 'package/msg/Name'")
    name = topic_without_number(topic, metadata)
    if not copied and (not name.strip() or not name.isprintable()):
        raise UsageError(f"{name!r:.80} cannot be the topic of a bag: printable characters only")
    schema = schema if copied and encoding != CDR else complete(schema)
    is_event = schema.name.endswith("_Event") and "---" in schema.text
    defined = schema.name.removesuffix("_Event") if is_event else schema.name
    texts = [metadata.get(key) for key in ("offered_qos_profiles", "topic_type_hash")]
    qos, digest = (text if isinstance(text, str) else "" for text in texts)
    row = TopicRow(number + 1, name, schema.name, encoding, qos, digest)
    try:
        "".join(map(str, (*row, schema.text))).encode()
    except UnicodeEncodeError as error:
        if not copied:
            raise UsageError(
                f"channel {topic!r}: what it says of itself is no text: {error.reason}"
            ) from None
    return NewTopic(row, defined, schema)


#: QoS by topic kind, as rosbag2 writes it: durability 1 is transient local, 2 volatile; reliability 1 is reliable.
_QOS = """- history: 1
  depth: {depth}
  reliability: 1
  durability: {durability}
  deadline:
    sec: 9223372036
    nsec: 854775807
  lifespan:
    sec: 9223372036
    nsec: 854775807
  liveliness: 1
  liveliness_lease_duration:
    sec: 9223372036
    nsec: 854775807
  avoid_ros_namespace_conventions: false"""
#: Depth of the queue of a publisher of ROS, and of those of ``/tf`` and ``/rosout``.
DEPTH, DEPTHS = 10, {"/tf": 100, "/rosout": 1000}


def qos_of(channel: Channel) -> str:
    """Return the QoS of the publishers of a topic of ROS 1, as a text of rosbag2.

    Latched topics and ``/tf_static`` are transient local, with a message of each publisher. All are reliable, which
    fits subscribers that ask for less, too.
    """
    is_latched = bool(channel.metadata.get("latching")) or channel.topic == "/tf_static"
    publishers = max(1, len(channel.metadata.get("headers") or ()))
    depth = publishers if is_latched else DEPTHS.get(channel.topic, DEPTH)
    return _QOS.format(depth=depth, durability=1 if is_latched else 2)


LOG = "rcl_interfaces/msg/Log"


def _text_columns(lines: TextColumns) -> dict[str, Column]:
    n = len(lines.time)
    none = from_values(String(), [""] * n)
    return {
        "stamp": Column(TIME, n, lines.time),
        "level": Column("uint8", n, lines.level.astype(np.uint8)),
        "name": lines.source,
        "msg": lines.text,
        "file": none,
        "function": none,
        "line": Column("uint32", n, np.zeros(n, np.uint32)),
    }


class Bag2SchemaMaker(SchemaMaker):
    """Definitions of ROS 2; *channels* are those declared, by number."""

    encoding = ENCODING
    abilities = Abilities(ros2msg.FIELD, nested_arrays=False)
    keeps_metadata = False

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.channels: list[NewTopic] = []

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the type *name*; empty: a type of package ``logreel``, named after the topic."""
        name = name or ros2msg.type_name(topic)
        return Schema(name, ENCODING, ros2msg.definition_from_layout(layout, name))

    def schema_from_text(self, topic: str, text: str, file: str) -> Schema:
        """Return the type of a ``.msg`` file: ``pkg/msg/Type`` for one in ``pkg/msg`` or ``pkg``, else by the topic."""
        path = PurePath(file)
        folder = path.parent.parent.name if path.parent.name == "msg" else path.parent.name
        name = f"{folder or ros1msg.PACKAGE}/msg/{path.stem}"
        return Schema(name if TYPE.fullmatch(name) else ros2msg.type_name(topic), ENCODING, text)

    def counterpart(self, channel: Channel) -> tuple[Conversion | None, dict[str, Any]]:
        """Return the type of ROS 2 for one of ROS 1, and the QoS of its publishers."""
        if channel.schema.encoding != "ros1msg":
            return None, {}
        # Loaded here, because other logs do not need it.
        from logreel.schemas import ros1to2

        rules = ros1to2.to_ros2(channel.schema, str(channel.metadata.get("md5sum", "*")))
        return rules, {"offered_qos_profiles": qos_of(channel)}

    def accepts_schema(self, schema: Schema) -> bool:
        """Return whether a channel can be written with *schema*: definitions of ROS 2."""
        return schema.encoding in LANGUAGES

    def text_channel(self) -> TextChannel:
        """Return ``/rosout``, whose levels are 10 (debug) to 50 (fatal)."""
        schema = complete(Schema(LOG, ENCODING))
        return TextChannel("/rosout", schema, (50, 50, 50, 40, 30, 20, 20, 10), 20, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return *topic* as a name of ROS: ``/sensor/imu_1`` for ``sensor/imu[1]``."""
        return ros1msg.topic_name(topic)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's definition; raises DefinitionError where nothing reads its messages."""
        channel = self.channels[number]
        language = language_named(channel.schema.encoding)
        layout = None
        if language is not None and channel.row.serialization_format == language.encoding:
            layout = language.layout(channel.schema)
        if layout is None:
            raise DefinitionError("the channel has no definition that is read: its messages are bytes")
        return layout


#: Version of the tables.
VERSION = 4
TABLES = {
    "schema": "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)",
    "metadata": "CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,"
    "metadata TEXT NOT NULL)",
    "topics": "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
    "serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL,type_description_hash TEXT NOT NULL)",
    "message_definitions": "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,"
    "encoding TEXT NOT NULL,encoded_message_definition TEXT NOT NULL,type_description_hash TEXT NOT NULL)",
    "messages": "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,"
    "timestamp INTEGER NOT NULL, data BLOB NOT NULL)",
}
INDEX = "timestamp_idx", "CREATE INDEX timestamp_idx ON messages (timestamp ASC)"


class Bag2Writer(FormatWriter):
    """Writes version 4 of the tables.

    compression  ``none``, or ``zstd`` for each message
    """

    title = "a bag of ROS 2"
    largest = LARGEST

    def __init__(self, out: Appender, compression: str = "none") -> None:
        if compression not in COMPRESSIONS:
            raise UsageError(f"compression {compression!r}; {self.title} has {', '.join(COMPRESSIONS)}")
        refuse_transactions(out.name)
        self._pack = zstd.compressor(LEVEL) if compression != "none" else None
        self.schemas: Bag2SchemaMaker = Bag2SchemaMaker(self.title)
        super().__init__(out, self.schemas)
        self._pages = DatabasePages(out, TABLES, INDEX)
        #: Language and text of the definitions by type and hash; rows that are yet to be written, by table.
        self._definitions: dict[tuple[str, str], tuple[str, str]] = {}
        self._waiting: dict[str, list[tuple[Value, ...]]] = {"topics": [], "message_definitions": []}
        self._counts = np.zeros(0, np.int64)
        self._span: tuple[int, int] | None = None
        self.distro = ""
        self.custom: dict[str, str] = {}

    # ------------------------------------------------------------------------------------------------- channels

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel; metadata ``offered_qos_profiles`` and ``topic_type_hash`` are kept.

        One without a definition has that which the bag has of its type.
        """
        if not schema.text:
            known = (content for (name, _), content in self._definitions.items() if name == schema.name)
            schema = Schema(schema.name, *next(known, (schema.encoding, "")))
        self._add(declare(number, topic, schema, metadata, copied=False))

    def copied_channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel of a bag of ROS 2, whatever its type and the encoding of its messages are."""
        self._add(declare(number, topic, schema, metadata, copied=True))

    def _add(self, channel: NewTopic) -> None:
        row, schema = channel.row, channel.schema
        if row.id > MOST_TOPICS:
            raise DefinitionError(
                f"channel {row.name!r}: logreel writes at most {MOST_TOPICS} topics to a bag"
            )
        key, content = (channel.defined, row.type_description_hash), (schema.encoding, schema.text)
        if schema.text:
            if self._definitions.get(key, content) != content:
                text = f"channel {row.name!r}: the bag has another definition of {channel.defined!r:.80}"
                raise DefinitionError(f"{text}, and can have one of each type")
            if key not in self._definitions:
                self._definitions[key] = content
                definition = (channel.defined, *content, row.type_description_hash)
                self._waiting["message_definitions"].append(definition)
        self._waiting["topics"].append(tuple(row[1:]))
        self.schemas.channels.append(channel)
        self._counts = np.append(self._counts, 0)

    def _write_waiting(self) -> None:
        for table, rows in self._waiting.items():
            if rows:
                self._pages.rows(table, rows)
                rows.clear()

    # ------------------------------------------------------------------------------------------------- messages

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages; none of them if one is too large."""
        if not len(channel):
            return
        largest = int(payloads.size.max())
        if largest > self.largest:
            raise UsageError(f"a message of {largest} bytes; {self.title} holds at most {self.largest}")
        if self._pages.count + len(channel) > MOST_MESSAGES:
            raise UsageError(f"logreel writes at most {MOST_MESSAGES} messages to a bag of ROS 2")
        self._write_waiting()
        if self._pack is None:
            self._pages.messages(channel.astype(np.int64) + 1, time, payloads)
        else:
            self._add_packed(channel.astype(np.int64) + 1, time, payloads, self._pack)
        self._counts += np.bincount(channel, minlength=len(self._counts))
        first, last = self._span or (int(time[0]), int(time[0]))
        self._span = min(first, int(time.min())), max(last, int(time.max()))

    def _add_packed(self, topic: I64, time: I64, payloads: Payloads, pack: Callable[[Buffer], bytes]) -> None:
        """Append messages as zstd frames, about a megabyte at once."""
        ends = np.cumsum(payloads.size)
        lo = 0
        while lo < len(topic):
            limit = _PACKED_AT_ONCE + (int(ends[lo - 1]) if lo else 0)
            hi = max(lo + 1, int(ends.searchsorted(limit, side="right")))
            few = payloads.rows(slice(lo, hi))
            data = np.split(few.joined(), np.cumsum(few.size)[:-1])
            frames = [pack(message) for message in data]
            sizes = np.array([len(frame) for frame in frames], np.int64)
            stored = np.frombuffer(b"".join(frames), np.uint8)
            self._pages.messages(topic[lo:hi], time[lo:hi], Payloads(stored, np.cumsum(sizes) - sizes, sizes))
            lo = hi

    # ------------------------------------------------------------------------------------------------- metadata

    def metadata(self, name: str, value: Any) -> None:
        """Write metadata: ``ros_distro``, ``custom_data``, and others as JSON among the latter."""
        if name == "ros_distro" and isinstance(value, str):
            self.distro = value
        elif name == "custom_data" and isinstance(value, Mapping):
            self.custom |= {str(key): str(text) for key, text in value.items()}
        else:
            try:
                text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
                is_same = json.loads(text) == value and bool(text.encode())
            except (TypeError, ValueError, RecursionError):
                is_same = False
            if not is_same:
                raise UnsupportedError(f"{self.title} has metadata that JSON can hold")
            self.custom[f"{OWN}{name}"] = text

    # ------------------------------------------------------------------------------------------------- the file

    def commit(self) -> None:
        """Write the page that is not full, so that its messages can be read."""
        self._write_waiting()
        self._pages.close_leaf()
        self.out.commit()

    def finish(self) -> None:
        """Write metadata, index, and what makes pages a database."""
        self._write_waiting()
        version = version_for(channel.row for channel in self.schemas.channels)
        topics = list(
            zip((channel.row for channel in self.schemas.channels), self._counts.tolist(), strict=True)
        )
        start, end = self._span or (None, None)
        # The name of the file may change; ros2 takes that of the file it opens.
        span = FileSpan("", int(self._counts.sum()), start, end)
        compression = ("", "") if self._pack is None else ("zstd", "MESSAGE")
        text = metadata_text("sqlite3", [span], topics, self.distro, self.custom, compression)
        self._pages.rows("metadata", [(version, text)])
        self._pages.rows("schema", [(self.distro,)], VERSION)
        self._pages.finish()
        self.out.commit()


class Bag2Copier(LogCopier):
    """Copies distribution and metadata of the user; the first log has precedence."""

    writer: Bag2Writer

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy ``ros_distro``, ``custom_data`` and what a conversion kept; return sentences about other values."""
        writer, before, sentences = self.writer, {**self.writer.custom}, list[str]()
        for name, value in log.metadata.items():
            if name == "rosbag2" or name in self.replaced_metadata:
                continue
            if self.masking is not None and name != "ros_distro":
                value = self.masking.value(name, value)
            if name != "ros_distro" or not writer.distro:
                writer.metadata(name, value)
        for name in before.keys() & writer.custom.keys():
            if writer.custom[name] != before[name]:
                shown = name.removeprefix(OWN)
                sentences.append(f"metadata {shown!r} has another value in {log.name}: the first one is kept")
                writer.custom[name] = before[name]
        return sentences

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the topic without the number of its definition, which changes where definitions are left out."""
        return str(metadata.get("topic", topic))


def append(out: Appender, log: Log, **options: Any) -> Bag2Writer:
    """Return the writer that continues *log*: its messages are written again, then come those that are added.

    So a database of any version and page size can be continued, and the unfinished file has the old messages and those
    that were flushed. Raises LogError if transactions lie beside the database, which its successor must not have.
    """
    beside = next((problem for problem in log.problems if problem.code in ("wal", "journal")), None)
    if beside is not None:
        raise LogError(
            f"cannot be continued: {beside.text}",
            path=log.name,
            hint="write it again by logreel.recover, and append to that",
        )
    out.keep_old(0)
    writer = Bag2Writer(out, **options)
    writer.continue_channels(log)
    Bag2Copier(writer).copy_metadata(log)
    for channel, time, payloads in _stored(log):
        writer.messages(channel, time, payloads)
    # Compressed messages were unpacked only now.
    lost = next((problem for problem in log.problems if problem.lost), None)
    if lost is not None:
        raise LogError(f"is damaged: {lost.text}", path=log.name, offset=lost.offset)
    writer.commit()
    # Whoever has the Writer may rely on the old messages in the unfinished file.
    out.flush()
    return writer


def _stored(log: Log) -> Iterator[tuple[NDArray[np.int32], I64, Payloads]]:
    """Yield numbers of channels, times in ns and payloads of all messages, in the order of the file."""
    index = log.index
    for batch in index.select_batches(order="file"):
        begins = np.flatnonzero(np.diff(batch.chunk, prepend=-2))
        for lo, hi in zip(begins.tolist(), [*begins[1:].tolist(), len(batch)], strict=True):
            data = index.chunks[int(batch.chunk[lo])]
            payloads = Payloads(data, batch.offset[lo:hi], batch.size[lo:hi].astype(np.int64))
            yield batch.channel[lo:hi], batch.time[lo:hi], payloads


# ----------------------------------------------------------------------------------------------------- the folder


def metadata_file(log: Log) -> Content:
    """Return the ``metadata.yaml`` for the files of *log*: their spans, and the topics with what is in these.

    As ``ros2 bag reindex`` writes it: also for parts whose recorder was not closed, or that were recovered or cut.
    """
    files = [
        FileSpan(os.path.basename(part.source.name), part.message_count, part.start, part.end)
        for part in log.parts
    ]
    return _metadata_of(log, files, MCAP if log.format == MCAP else SQLITE, log.metadata)


def _metadata_of(log: Log, files: Sequence[FileSpan], storage: str, metadata: Mapping[str, Any]) -> Content:
    topics = dict[str, tuple[TopicRow, int]]()
    for number, ch in enumerate(log.match(None)):
        row = declare(number, ch.topic, ch.schema, ch.metadata, copied=True).row
        topics[row.name] = row, len(ch) + (topics[row.name][1] if row.name in topics else 0)
    compression = "FILE" if all(file.path.endswith(PACKED) for file in files) else ""
    if log.format != MCAP and any(part.format_state.packed.any() for part in log.parts):
        compression = "MESSAGE"
    custom = metadata.get("custom_data")
    text = metadata_text(
        storage,
        files,
        [topics[name] for name in sorted(topics)],
        str(metadata.get("ros_distro", "")),
        {str(name): str(value) for name, value in custom.items()} if isinstance(custom, Mapping) else {},
        ("zstd" if compression else "", compression),
    )
    data = file_text(text).encode("utf-8", "surrogateescape")
    every = FileSpan.of_all(files)
    about = {"files": [file.path for file in files], "messages": every.messages, "topics": len(topics)}
    return Content(lambda: iter((data,)), {**about, "start_ns": every.start, "end_ns": every.end})


def _part_name(
    name: str, number: int = 0, compression_mode: str = "", storage: str = SQLITE, **_: object
) -> str:
    """Return the name of a file of the folder *name*."""
    return f"{name}_{number}{STORAGES.get(storage, '')}{PACKED if compression_mode == FILE else ''}"


def _inside(
    compression_mode: str = "",
    max_bag_size: int | None = None,
    max_bag_duration: float | None = None,
    storage: str = SQLITE,
) -> Mapping[str, Any]:
    """Return the compression of messages; raise UsageError for values that the options of a folder cannot have."""
    if storage not in STORAGES:
        raise UsageError(f"storage={storage!r:.40}: a bag of ROS 2 has {' or '.join(STORAGES)}")
    if storage == MCAP and compression_mode == MESSAGE:
        raise UsageError("files in MCAP compress groups of messages: leave out compression_mode=message")
    if compression_mode not in ("", FILE, MESSAGE):
        raise UsageError(f"compression_mode={compression_mode!r}: a bag of ROS 2 has {FILE} or {MESSAGE}")
    for name, value in (("max_bag_size", max_bag_size), ("max_bag_duration", max_bag_duration)):
        if value is not None and (isinstance(value, bool | str) or not value > 0):
            unit = "bytes" if name == "max_bag_size" else "seconds"
            raise UsageError(f"{name}={value!r}: expected a number of {unit} above 0")
    # Messages of a file that is packed are not packed once more.
    return {"compression": "zstd" if compression_mode == MESSAGE else "none"} if compression_mode else {}


def _cuts(
    log: Log, max_bag_size: int | None = None, max_bag_duration: float | None = None, **_: object
) -> list[int]:
    """Return where further files begin: after the message with which one has its size, or its duration, in time."""
    if max_bag_size is None and max_bag_duration is None:
        return []
    time, size, tables = _sizes(log)
    ends = np.cumsum(size + _ROW_BYTES, dtype=np.float64)
    # Each file has the other tables, and messages leave room in pages.
    tables = min(tables, log.size)
    ends *= (log.size - tables) / ends[-1] if len(ends) else 1
    cuts, lo = list[int](), 0
    while lo < len(time):
        hi = len(time)
        if max_bag_size is not None:
            before = float(ends[lo - 1]) if lo else 0.0
            hi = int(ends.searchsorted(before + max(0, max_bag_size - tables))) + 1
        if max_bag_duration is not None:
            last = int(time[lo]) + min(round(max_bag_duration * 10**9), NEVER - int(time[lo]))
            hi = min(hi, int(time.searchsorted(last)))
        # Messages of one time stay together, so that a file has what is between two times.
        lo = int(time.searchsorted(time[hi - 1], side="right")) if hi < len(time) else hi
        if lo < len(time):
            cuts.append(int(time[lo]))
            if len(cuts) >= MOST_FILES:
                raise UsageError(f"that makes more than {MOST_FILES} files")
    return cuts


def _sizes(log: Log) -> tuple[I64, I64, int]:
    """Return times and sizes of messages in the order of time, and about the bytes that each file has besides."""
    if log.format == MCAP:
        batches = list(log.index.select_batches())
        time, size = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(batch, name) for batch in batches)])
            for name in ("time", "size")
        )
        return time, size, sum({ch.schema: len(ch.schema.text) for ch in log.channels.values()}.values())
    bag: Bag = log.format_state
    messages = bag.file.messages
    order = np.argsort(messages.time, kind="stable")
    return messages.time[order], messages.size[order], _tables_bytes(bag)


def _tables_bytes(bag: Bag) -> int:
    """Return about the bytes that topics, definitions and metadata have in each file of a folder."""
    texts = [bag.file.metadata]
    texts += [text for topic in bag.file.topics for text in topic[1:]]
    texts += [stored.text for key, stored in bag.file.definitions.items() if not key[1]]
    return sum(map(len, texts)) + 2 * len(TABLES) * PAGE


def _holds(log: Log) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return the storage of folders that have *log*, an MCAP with messages of ROS 2, and what its files say."""
    if log.format != MCAP:
        return None
    stated = "rosbag2" in log.metadata or log.metadata.get(MCAP, {}).get("profile") == "ros2"
    is_bag = stated or all(ch.metadata.get("message_encoding") == CDR for ch in log.match(None))
    return ({"storage": MCAP}, {"profile": "ros2"}) if is_bag else None


def _describe(
    paths: Sequence[str],
    metadata: Mapping[str, Any],
    compression_mode: str = "",
    storage: str | None = None,
    **_: object,
) -> list[str]:
    """Write the ``metadata.yaml`` of a folder for its files and the new ones *paths*; pack these if others are.

    Return the paths of the new files.

    metadata  of the log, for files in MCAP, which do not have those of a bag
    storage   that which the new files get, in whatever they are written; None: that of the other files, or a database
    """
    place = Path(paths[0]).parent
    before = bag_folder(str(place), os.listdir(place))
    # A file that another recorder did not complete is no database yet.
    old = [path for path in before.parts if not path.endswith(ACTIVE)] if before is not None else []
    old = [path for path in old if path not in paths]
    is_packed = compression_mode == FILE or (bool(old) and all(path.endswith(PACKED) for path in old))
    if storage is None:
        in_mcap = all(path.removesuffix(PACKED).endswith(STORAGES[MCAP]) for path in old)
        storage = MCAP if old and in_mcap else SQLITE
    with open_log([*paths], anyway=True) as log:
        metadata = {**metadata, **log.metadata}
    new = [_stored_as(path, storage) for path in paths]
    for path, stored in zip(paths, new, strict=True):
        if path != stored:
            _store_again(path, stored, metadata)
    with open_log([*old, *new], anyway=True) as log:
        spans = [
            FileSpan(
                os.path.basename(part.source.name) + PACKED * (is_packed and part.source.name in new),
                part.message_count,
                part.start,
                part.end,
            )
            for part in log.parts
        ]
        stated = before.metadata if before is not None else {}
        text = _metadata_of(log, spans, storage, {**metadata, **stated, **log.metadata}).read()
    for path in new if is_packed else ():
        _pack_file(path)
    replace_text(place / METADATA, text.decode("utf-8", "replace"))
    return [path + PACKED for path in new] if is_packed else new


def _stored_as(path: str, storage: str) -> str:
    """Return the name of a file in a storage."""
    return os.path.splitext(path)[0] + STORAGES[storage]


def _store_again(path: str, new: str, metadata: Mapping[str, Any]) -> None:
    """Replace a file by one in another storage with its channels and messages; raises LogError if these differ.

    metadata  of the log, which a database has
    """
    options: dict[str, Any] = {"profile": "ros2"} if new.endswith(STORAGES[MCAP]) else {}
    with open_log(path) as log:
        with create(new, **options) as w:
            for name, value in metadata.items() if not options else ():
                if name in DESCRIBED:
                    w.metadata(name, value)
            for ch in log.match(None):
                w.add_channel(ch.topic, ch.schema, ch.metadata)
            for channel, time, payloads in _stored(log):
                w.write_payloads(channel, time, payloads)
        with open_log(new) as written:
            if _digest(written) != _digest(log):
                raise LogError("has other messages than the file it was made of", path=new)
    os.unlink(path)


def _digest(log: Log) -> bytes:
    """Return a digest of times, topics and bytes of all messages."""
    digest = sha256()
    for m in log.messages():
        digest.update(f"{m.time} {len(m.data)} {m.channel.topic}\n".encode("utf-8", "surrogatepass"))
        digest.update(m.data)
    return digest.digest()


def _pack_file(path: str) -> None:
    """Replace a file by one zstd frame with its content, as ``ros2 bag`` packs it; raises LogError if it differs."""
    with open(path, "rb") as file, open(path + PACKED, "xb") as out:
        zstd.pack_file(file, out, LEVEL)
        out.flush()
        os.fsync(out.fileno())
    content, buffer = zstd.reader(Source.open(path + PACKED).view), bytearray(_PIECE)
    with open(path, "rb") as file:
        while count := content.readinto(buffer):
            if file.read(count) != buffer[:count]:
                break
        if count or file.read(1):
            raise LogError("the packed file has other bytes than the database", path=path + PACKED)
    os.unlink(path)


NEW_FOLDER = NewFolder(
    _part_name,
    _describe,
    ("compression_mode", "max_bag_size", "max_bag_duration", "storage"),
    _inside,
    _cuts,
    _holds,
    DESCRIBED,
)

COMMANDS = (
    Command(
        "metadata",
        "Write the metadata.yaml of a folder of databases or MCAP files, so that ros2 bag opens it.",
        metadata_file,
        (),
        (
            Example(
                "logreel rosbag2 metadata drive -o drive/metadata.yaml",
                "for the files drive_0.db3, drive_1.db3 …",
            ),
            Example("logreel rosbag2 metadata walk.db3 -o walk.yaml", "what it would be for one file"),
        ),
        formats=(MCAP,),
    ),
)
