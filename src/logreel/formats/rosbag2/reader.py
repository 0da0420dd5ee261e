"""Read the database of a bag (``.db3``): topics, definitions, and where the messages are.

Only tables of the names that rosbag2 writes are read. What no b-tree leads to any more because of damage is looked
for in all pages that nothing else uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import Problem
from logreel.formats.rosbag2.pages import PageRecords, Pages, values_of
from logreel.formats.rosbag2.wal import heads, with_wal
from logreel.io.arrays import I64
from logreel.io.source import Buffer, Source
from logreel.kernels import sqlite as kernel

#: Most bytes of a row of the small tables, and most rows of one of them.
MAX_ROW, MAX_ROWS = 16 << 20, 1 << 16
#: Most topics without a row that get a channel.
MAX_UNKNOWN = 256
#: Beginning of a compressed message; one in CDR begins with a zero byte.
ZSTD = 0x28B52FFD
#: Numbers of topics below it are counted.
_SMALL = 1 << 12
#: Largest message: sizes have 32 bits.
MAX_SIZE = (1 << 31) - 1
#: Bytes in which the statements that make the tables are, at the front of a database and of its write-ahead log.
HEAD_BYTES = 1 << 16
TABLES = ("messages", "topics", "message_definitions", "metadata", "schema")
#: Columns of the messages in all versions of rosbag2.
COLUMNS = ("id", "topic_id", "timestamp", "data")
#: Languages of definitions in bags.
DEFINITIONS = ("ros2msg", "ros2idl")
_CONSTRAINTS = ("constraint", "primary", "unique", "check", "foreign")
_NAME = re.compile(r'\s*(?:"([^"]*)"|`([^`]*)`|\[([^\]]*)\]|\'([^\']*)\'|([^\s,()]+))')
_TOKEN = re.compile(r'"[^"]*"|`[^`]*`|\[[^\]]*\]|\'[^\']*\'|[(),]|[^"`\[\'(),]+')


class TopicRow(NamedTuple):
    """A row of the table ``topics``."""

    id: int
    name: str
    type: str = ""
    serialization_format: str = ""
    offered_qos_profiles: str = ""
    type_description_hash: str = ""


class StoredDefinition(NamedTuple):
    """A row of the table ``message_definitions``."""

    encoding: str
    text: str


class TypeDefinition(NamedTuple):
    """A definition with the type that it is of, and the hash of that."""

    type: str
    digest: str
    stored: StoredDefinition


@dataclass(slots=True)
class MessageRows:
    """Rows of the table ``messages`` by rowid.

    topic  int64[n], id of the topic
    time   int64[n], ns
    begin  int64[n], offset of the first byte of each message
    size   int64[n], bytes of it
    local  int64[n], bytes of it that lie there; the rest is in a chain of pages from *chain* on, int64[n]
    rowid  int64[n]
    """

    rowid: I64
    topic: I64
    time: I64
    begin: I64
    size: I64
    local: I64
    chain: I64

    NAMES = ("rowid", "topic", "time", "begin", "size", "local", "chain")

    def at(self, rows: NDArray[Any]) -> MessageRows:
        """Return the messages at *rows*, numbers or a mask."""
        return MessageRows(*(getattr(self, name)[rows] for name in self.NAMES))

    def and_more(self, more: MessageRows) -> MessageRows:
        """Return both, by rowid; of two with one rowid the first."""
        both = [np.concatenate([getattr(self, name), getattr(more, name)]) for name in self.NAMES]
        every = MessageRows(*both)
        order = np.argsort(every.rowid, kind="stable")
        same = np.zeros(len(order), np.bool_)
        same[1:] = every.rowid[order][1:] == every.rowid[order][:-1]
        return every.at(order[~same])

    def __len__(self) -> int:
        return len(self.rowid)


@dataclass(slots=True)
class Database:
    """The content of a database.

    definitions  by type and hash, and by type and an empty hash the first one of a type
    chains      pages of the overflow chains that are not consecutive, by rowid
    time_index  first page of the index of the times of messages, or None
    is_plain    whether no message can be a zstd frame
    """

    pages: Pages
    messages: MessageRows
    topics: list[TopicRow] = field(default_factory=list)
    definitions: dict[tuple[str, str], StoredDefinition] = field(default_factory=dict)
    schema_version: int = 1
    distro: str = ""
    metadata: str = ""
    chains: dict[int, I64] = field(default_factory=dict)
    time_index: int | None = None
    is_plain: bool = False
    problems: list[Problem] = field(default_factory=list)


def columns_of(sql: str) -> list[str]:
    """Return the names of the columns in a statement ``CREATE TABLE``, in lower case."""
    parts, depth = [""], 0
    for match in _TOKEN.finditer(sql, max(0, sql.find("("))):
        token = match[0]
        depth += (token == "(") - (token == ")")
        if token == "," and depth == 1:
            parts.append("")
        elif depth > 1 or (depth == 1 and token != "("):
            parts[-1] += token
        if token == ")" and not depth:
            break
    names = list[str]()
    for part in parts:
        match_name = _NAME.match(part)
        name = "" if match_name is None else next(filter(None, match_name.groups()), "").lower()
        if name and name not in _CONSTRAINTS:
            names.append(name)
    return names


def is_bag(source: Source) -> bool:
    """Return whether a database is of rosbag2: its first page, or the log beside it, names the tables."""
    return any(b"topic_id" in head and b"messages" in head for head in heads(source, HEAD_BYTES))


class DatabaseReader:
    """Reads one database."""

    def __init__(self, source: Source) -> None:
        self.problems = list[Problem]()
        data: Buffer = with_wal(source, self.problems)
        self.pages = Pages(data, self.problems)
        self._roots: dict[str, tuple[int, str]] = {}
        self._indices, self._others = list[int](), list[int]()
        self._time_index: int | None = None
        self._is_plain = False

    def read(self) -> Database:
        """Return everything that was found; damage is recorded as Problems."""
        pages, problems = self.pages, self.problems
        self._read_master()
        topics = [topic for row in self._rows("topics") if (topic := _topic(row)) is not None]
        definitions = list(filter(None, map(_definition, self._rows("message_definitions"))))
        stated = list(self._rows("schema"))
        versions = [row["schema_version"] for row in stated if isinstance(row.get("schema_version"), int)]
        distros = [row["ros_distro"] for row in stated if isinstance(row.get("ros_distro"), str)]
        texts = [row["metadata"] for row in self._rows("metadata") if isinstance(row.get("metadata"), str)]
        messages = self._messages()
        known, trees = {topic.id for topic in topics}, pages.used.copy()
        # Behind the pages that the header counts are those of a recording that was not finished.
        if any(problem.lost for problem in problems) or pages.count > pages.stated_count:
            topics, definitions, messages = self._salvaged(topics, definitions, messages)
            known = {topic.id for topic in topics}
        file = Database(
            pages,
            messages,
            topics,
            _by_type(definitions),
            versions[0] if versions else self._version_by_columns(),
            distros[0] if distros else "",
            texts[-1] if texts else "",
            time_index=self._time_index,
            is_plain=self._is_plain,
            problems=problems,
        )
        self._name_unknown(file, known)
        _check_chains(file, trees)
        return file

    def _version_by_columns(self) -> int:
        """Return the version of the tables, for those that do not state it."""
        columns = columns_of(self._roots["topics"][1]) if "topics" in self._roots else []
        if "type_description_hash" in columns:
            return 4
        return 2 if "offered_qos_profiles" in columns else 1

    def _read_master(self) -> None:
        if not self.pages.count:
            return
        for row in self._table_rows(1, "the schema", ["type", "name", "tbl_name", "rootpage", "sql"]):
            entry_type, name, root = row.get("type"), row.get("name"), row.get("rootpage")
            if not isinstance(name, str) or not isinstance(root, int):
                self.pages.note("schema", 0, 0, True, "a row of the schema is damaged")
            elif entry_type == "table" and name in TABLES and name not in self._roots:
                self._roots[name] = root, str(row.get("sql") or "")
            elif entry_type == "index":
                self._indices.append(root)
                if name == "timestamp_idx" and row.get("tbl_name") == "messages" and root:
                    self._time_index = root
            elif entry_type == "table" and name.startswith("sqlite_"):
                self._others.append(root)
            else:
                text = f"a {entry_type} {name[:60]!r}, which is none of rosbag2, is not read"
                self.pages.note("unknown", 0, 0, False, text)
                self._others.append(root)
        for name in ("messages", "topics"):
            if name not in self._roots:
                self.pages.note("schema", 0, 1, True, f"there is no table {name!r}")

    def _rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a small table as dicts."""
        if name not in self._roots:
            return []
        root, sql = self._roots[name]
        return self._table_rows(root, f"table {name}", columns_of(sql))

    def _table_rows(self, root: int, what: str, names: list[str]) -> list[dict[str, Any]]:
        pages, rows = self.pages, list[dict[str, Any]]()
        cells = pages.cells(pages.leaves(root, what), what)
        if len(cells) > MAX_ROWS:
            text = f"{what} has {len(cells)} rows; {MAX_ROWS} are read"
            pages.note("rows", 0, 1, True, text)
            cells = cells.at(np.arange(MAX_ROWS))
        places = (cells.rowid, cells.begin, cells.size, cells.local)
        for rowid, begin, size, local in zip(*(place.tolist() for place in places), strict=True):
            payload = pages.payload(begin, size, local, MAX_ROW)
            values = None if payload is None else values_of(payload, pages.encoding)
            if values is None:
                pages.note("record", begin, local, True, f"a row of {what} is damaged")
                continue
            row: dict[str, Any] = dict(zip(names, values, strict=False))
            # A primary key of whole numbers is the rowid, and not stored.
            if names and row.get(names[0], 0) is None:
                row[names[0]] = rowid
            rows.append(row)
        return rows

    # ------------------------------------------------------------------------------------------------ messages

    def _messages(self) -> MessageRows:
        if "messages" not in self._roots:
            return _no_messages()
        root, sql = self._roots["messages"]
        names = columns_of(sql)
        if not {*COLUMNS[1:]} <= {*names}:
            self.pages.note("schema", 0, 1, True, "the table 'messages' has not the columns of rosbag2")
            return _no_messages()
        leaves = self.pages.leaves(root, "table messages")
        return self._sound_messages(leaves, names) or self._some_messages(leaves, names)

    def _sound_messages(self, leaves: list[int], names: list[str]) -> MessageRows | None:
        """Return the messages in leaf pages; None if not all of these are as SQLite writes them."""
        pages, page = self.pages, np.array(leaves, np.int64)
        if len(names) > kernel.COLUMNS:
            return None
        out = pages.room(page, len(MessageRows.NAMES))
        topic, time, data = (names.index(name) for name in COLUMNS[1:])
        count, packed = kernel.message_rows(
            pages.data, page, pages.size, pages.usable, len(names), topic, time, data, MAX_SIZE, ZSTD, out
        )
        if count != out.shape[1]:
            return None
        self._is_plain = not packed
        return MessageRows(*out)

    def _some_messages(self, leaves: list[int], names: list[str]) -> MessageRows:
        """Return the messages in leaf pages that can be read, and note what cannot."""
        cells = self.pages.cells(leaves, "table messages")
        messages, good = self._decoded(cells, names)
        bad = np.flatnonzero(~good)
        for at, local in zip(cells.begin[bad].tolist(), cells.local[bad].tolist(), strict=True):
            self.pages.note("record", at, local, True, "a row of table messages is damaged")
        falls = np.flatnonzero(np.diff(messages.rowid) <= 0)
        if len(falls):
            text = "rows of table messages are not in the order of their numbers"
            self.pages.note("record", messages.begin[falls[0] + 1], 1, True, text)
            messages = messages.and_more(_no_messages())
        return messages

    def _decoded(self, cells: PageRecords, names: list[str]) -> tuple[MessageRows, NDArray[np.bool_]]:
        """Return the good rows as messages, and bool[n] which these are."""
        types, offset, good = self.pages.fields(cells, len(names))
        topic, time, data = (names.index(name) for name in COLUMNS[1:])
        for column in (topic, time):
            kinds = types[:, column]
            good &= ((kinds > 0) & (kinds < 7)) | (kinds == 8) | (kinds == 9)
            good &= offset[:, column + 1] <= cells.local
        # A message begins in the leaf page, and is the end of its row.
        good &= (types[:, data] >= 12) & (offset[:, data] <= cells.local)
        good &= offset[:, data + 1] == cells.size
        size = offset[:, data + 1] - offset[:, data]
        good &= size <= MAX_SIZE
        kept, start = cells.at(good), offset[good]
        local = kept.local - start[:, data]
        size = size[good]
        chain = np.zeros(len(kept), np.int64)
        split = np.flatnonzero(local < size)
        chain[split] = self.pages.numbers(kept.begin[split] + kept.local[split], 4)
        messages = MessageRows(
            kept.rowid,
            self.pages.integers(kept.begin + start[:, topic], types[good, topic]),
            self.pages.integers(kept.begin + start[:, time], types[good, time]),
            kept.begin + start[:, data],
            size,
            local,
            chain,
        )
        return messages, good

    def _salvaged(
        self, topics: list[TopicRow], definitions: list[TypeDefinition], messages: MessageRows
    ) -> tuple[list[TopicRow], list[TypeDefinition], MessageRows]:
        """Return topics, definitions and messages with those in leaf pages that no b-tree leads to any more."""
        pages = self.pages
        # Pages of overflow chains may look like anything.
        for page, count in _straight_chains(pages, messages):
            pages.used[page : page + count] = 1
        pages.mark_others(self._indices, tables=False)
        pages.mark_others(self._others, tables=True)
        pages.mark_free()
        leaves = pages.unused_leaves()
        if not topics or not definitions:
            rows = list(self._salvaged_rows(leaves))
            topics = topics or _unlike(map(_topic_of, rows))
            definitions = definitions or list(filter(None, map(_definition_of, rows)))
        cells = pages.cells(leaves, "", quiet=True)
        self._is_plain = False
        salvaged, _ = self._decoded(cells, list(COLUMNS))
        known = np.array([topic.id for topic in topics], np.int64)
        plausible = (
            np.isin(salvaged.topic, known)
            if len(known)
            else (salvaged.topic > 0) & (salvaged.topic < MAX_UNKNOWN)
        )
        salvaged = salvaged.at(plausible & (salvaged.rowid > 0))
        before = len(messages)
        messages = messages.and_more(salvaged)
        if (more := len(messages) - before) > 0:
            text = f"{more} messages are from pages that no table leads to any more"
            pages.note("salvaged", 0, 0, False, text)
        return topics, definitions, messages

    def _salvaged_rows(self, leaves: list[int]) -> Iterator[tuple[int, list[str]]]:
        """Yield number and texts of all rows of four or five texts in *leaves*, which those of small tables have."""
        pages, count = self.pages, 0
        cells = pages.cells(leaves, "", quiet=True)
        for rowid, begin, size, local in zip(
            cells.rowid.tolist(), cells.begin.tolist(), cells.size.tolist(), cells.local.tolist(), strict=True
        ):
            # A row begins with the size of its header, which is as many bytes as it has fields, or some more.
            if not 0 < size <= MAX_ROW or count >= MAX_ROWS or not 4 <= pages.number(begin, 1) <= 40:
                continue
            values = values_of(pages.payload(begin, size, local, MAX_ROW) or b"", pages.encoding)
            if values is None or not 4 <= len(values) <= 6 or values[0] is not None:
                continue
            texts = [value for value in values[1:] if isinstance(value, str)]
            if len(texts) == len(values) - 1:
                count += 1
                yield rowid, texts

    def _name_unknown(self, file: Database, known: set[int]) -> None:
        """Give messages of topics that no row names channels of their own."""
        topic, lost = file.messages.topic, 0
        if not len(topic):
            return
        if topic.min() >= 0 and topic.max() < _SMALL:
            # Without sorting them.
            every = np.bincount(topic)
            numbers = np.flatnonzero(every)
            counts = every[numbers]
        else:
            numbers, counts = np.unique(topic, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if number in known:
                continue
            if len(file.topics) - len(known) >= MAX_UNKNOWN:
                lost += count
                continue
            text = f"{count} messages are of a topic {number} that no row names; their type is not known"
            self.pages.note("topic", 0, 0, False, text)
            file.topics.append(TopicRow(number, f"topic_{number}"))
        if lost:
            text = f"{lost} messages are of more unknown topics than {MAX_UNKNOWN}"
            self.pages.note("topic", 0, lost, True, text)
            kept = np.array([topic.id for topic in file.topics], np.int64)
            file.messages = file.messages.at(np.isin(file.messages.topic, kept))


def _topic_of(row: tuple[int, list[str]]) -> TopicRow | None:
    """Return the topic that a row without a table is; None for one that is something else."""
    number, texts = row
    # A definition has as many texts; the type of a topic has a package.
    is_topic = "/" in texts[1] and texts[2] and "\n" not in texts[2]
    return TopicRow(number, *texts) if is_topic else None


def _definition_of(row: tuple[int, list[str]]) -> TypeDefinition | None:
    """Return the definition that a row without a table is; None for one that is something else."""
    _, texts = row
    is_definition = len(texts) == 4 and "/" in texts[0] and texts[1] in DEFINITIONS
    return TypeDefinition(texts[0], texts[3], StoredDefinition(texts[1], texts[2])) if is_definition else None


def _unlike(topics: Iterable[TopicRow | None]) -> list[TopicRow]:
    """Return the topics by number; of two with one number the first."""
    numbered = dict[int, TopicRow]()
    for topic in topics:
        if topic is not None:
            numbered.setdefault(topic.id, topic)
    return [numbered[number] for number in sorted(numbered)]


def _definition(row: dict[str, Any]) -> TypeDefinition | None:
    name, text, digest = (
        row.get(name) for name in ("topic_type", "encoded_message_definition", "type_description_hash")
    )
    if not isinstance(name, str) or not isinstance(text, str):
        return None
    stored = StoredDefinition(str(row.get("encoding")), text)
    return TypeDefinition(name, digest if isinstance(digest, str) else "", stored)


def _by_type(definitions: Iterable[TypeDefinition]) -> dict[tuple[str, str], StoredDefinition]:
    stored = dict[tuple[str, str], StoredDefinition]()
    for definition in definitions:
        for digest in (definition.digest, ""):
            stored.setdefault((definition.type, digest), definition.stored)
    return stored


def _no_messages() -> MessageRows:
    return MessageRows(*(np.zeros(0, np.int64) for _ in MessageRows.NAMES))


def _topic(row: dict[str, Any]) -> TopicRow | None:
    if not isinstance(row.get("id"), int) or not isinstance(row.get("name"), str):
        return None
    texts = {name: str(row[name]) for name in TopicRow._fields[1:] if isinstance(row.get(name), str)}
    return TopicRow(row["id"], **texts)


# ------------------------------------------------------------------------------------------------------------ chains


def pages_of(size: I64, local: I64, room: int) -> I64:
    """Return int64[n]: the overflow pages of messages."""
    return -((local - size) // room)


def _straight_chains(pages: Pages, messages: MessageRows) -> list[tuple[int, int]]:
    """Return first page and number of pages of the overflow chains as far as these are consecutive and in the file."""
    count = np.maximum(0, pages_of(messages.size, messages.local, pages.usable - 4))
    first = messages.chain
    inside = (count > 0) & (first > 0) & (first + count - 1 <= pages.count)
    return list(zip(first[inside].tolist(), count[inside].tolist(), strict=True))


def _check_chains(file: Database, trees: NDArray[np.uint8]) -> None:
    """Leave out messages whose overflow pages are missing, or belong to something else, as Problems.

    trees  which pages are those of tables, by number
    """
    pages, messages = file.pages, file.messages
    count = np.maximum(0, pages_of(messages.size, messages.local, pages.usable - 4))
    rows = np.flatnonzero(count)
    if not len(rows):
        return
    after = np.ascontiguousarray(pages.data[: pages.count * pages.size].reshape(-1, pages.size)[:, :4])
    follows = np.zeros(pages.count + 2, np.int64)
    follows[1:-1] = after.view(">u4").ravel()
    # Pages before each page that name the next one as theirs.
    straight = np.zeros(pages.count + 3, np.int64)
    np.cumsum(follows == np.arange(1, pages.count + 3), out=straight[1:])
    first, size = messages.chain[rows], count[rows]
    inside = (first > 0) & (first + size - 1 <= pages.count)
    begin = np.where(inside, first, 1)
    last = begin + np.where(inside, size, 1) - 1
    is_straight = inside & (straight[last] - straight[begin] == size - 1) & (follows[last] == 0)
    taken = np.zeros(pages.count + 2, np.int64)
    np.add.at(taken, begin[is_straight], 1)
    np.add.at(taken, last[is_straight] + 1, -1)
    taken = np.cumsum(taken)
    taken[: len(trees)] += trees
    good = is_straight.copy()
    for n in np.flatnonzero(~is_straight).tolist():
        chain = _walk(follows, taken, int(first[n]), int(size[n]))
        if chain is not None:
            file.chains[int(messages.rowid[rows[n]])] = chain
            good[n] = True
    twice = np.zeros(pages.count + 3, np.int64)
    np.cumsum(taken > 1, out=twice[1:])
    shared = is_straight & (twice[last + 1] > twice[begin])
    good &= ~shared
    bad = rows[~good]
    if len(bad):
        for row in bad[:100].tolist():
            text = f"a message of {messages.size[row]} bytes is not complete: its further pages are damaged or missing"
            pages.note("record", messages.begin[row], messages.size[row], True, text)
        if len(bad) > 100:
            rest = int(messages.size[bad[100:]].sum())
            pages.note("record", 0, rest, True, f"{len(bad) - 100} further messages are not complete")
        keep = np.ones(len(messages), np.bool_)
        keep[bad] = False
        file.messages = messages.at(keep)


def _walk(follows: I64, taken: I64, page: int, count: int) -> I64 | None:
    """Return the pages of a chain that is not consecutive, and take them; None if it is broken."""
    if count > len(follows):
        return None
    chain = list[int]()
    for _ in range(count):
        if not 0 < page < len(follows) - 1 or taken[page]:
            return None
        taken[page] = 1
        chain.append(page)
        page = int(follows[page])
    return np.array(chain, np.int64) if page == 0 else None
