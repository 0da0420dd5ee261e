"""Bags of ROS 2 written by the SQLite library, with the statements of rosbag2_storage_sqlite3."""

from __future__ import annotations

import sqlite3
import struct
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

START = 1_700_000_000 * 10**9
#: Tables by version of the database; 1 has neither QoS nor definitions.
TABLES = {
    1: "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
    "serialization_format TEXT NOT NULL)",
    2: "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
    "serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL)",
    4: "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
    "serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL,type_description_hash TEXT NOT NULL)",
}
MESSAGES = (
    "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER NOT NULL, "
    "data BLOB NOT NULL)",
    "CREATE INDEX timestamp_idx ON messages (timestamp ASC)",
)
MORE = (
    "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)",
    "CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,metadata TEXT NOT NULL)",
    "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,encoding TEXT NOT NULL,"
    "encoded_message_definition TEXT NOT NULL,type_description_hash TEXT NOT NULL)",
)
QOS = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n"


class Topic(NamedTuple):
    """A topic: name, type, and the definition in the bag if it has one."""

    name: str
    type: str
    definition: str = ""
    serialization: str = "cdr"


Message = tuple[int, int, bytes]
FOOT = "uint8 leg\nbool down\nfloat64 force\nuint8[] skin\n"
TOPICS = (Topic("/chatter", "std_msgs/msg/String", "string data\n"), Topic("/foot", "robot/msg/Foot", FOOT))


def text(value: str) -> bytes:
    """Return a std_msgs/String in CDR."""
    data = value.encode() + b"\0"
    return b"\0\1\0\0" + struct.pack("<I", len(data)) + data


def foot(leg: int, force: float, skin: bytes) -> bytes:
    """Return a robot/Foot in CDR."""
    return b"\0\1\0\0" + struct.pack("<B?6xdI", leg, leg % 2 == 0, force, len(skin)) + skin


def walk(count: int = 200, largest: int = 20_000) -> list[Message]:
    """Return messages of both TOPICS, number, time and payload, with sizes from a few bytes up to *largest*."""
    messages = list[Message]()
    for n in range(count):
        time = START + n * 10**7
        if n % 3:
            messages.append((1, time, text(f"step {n} " + "x" * (n * 7 % 90))))
        else:
            skin = bytes(i * n & 0xFF for i in range(n * n * 37 % largest))
            messages.append((2, time, foot(n % 4, n / 8, skin)))
    return messages


def write(
    path: Path,
    messages: Iterable[Message],
    topics: Sequence[Topic] = TOPICS,
    *,
    version: int = 4,
    page: int = 4096,
    more: Iterable[str] = (),
    metadata: str = "",
) -> sqlite3.Connection:
    """Write a database, and return the connection to it, with everything committed.

    more  further statements
    """
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA page_size={page}")
    database.execute("BEGIN")
    for statement in (TABLES[version], *MESSAGES, *(MORE if version > 2 else ())):
        database.execute(statement)
    for number, topic in enumerate(topics, 1):
        values = (number, topic.name, topic.type, topic.serialization, QOS, "RIHS01_ab")
        columns = {1: 4, 2: 5, 4: 6}[version]
        database.execute(f"INSERT INTO topics VALUES({','.join('?' * columns)})", values[:columns])
        if version > 2 and topic.definition:
            row = (topic.type, "ros2msg", topic.definition, "RIHS01_ab")
            database.execute("INSERT INTO message_definitions VALUES(NULL,?,?,?,?)", row)
    if version > 2:
        database.execute("INSERT INTO schema VALUES(4,'rolling')")
    if metadata:
        database.execute("INSERT INTO metadata VALUES(NULL,5,?)", (metadata,))
    add(database, messages)
    for statement in more:
        database.execute(statement)
    database.execute("COMMIT")
    return database


def add(database: sqlite3.Connection, messages: Iterable[Message]) -> None:
    """Add messages, without a transaction of their own."""
    database.executemany("INSERT INTO messages(topic_id,timestamp,data) VALUES(?,?,?)", messages)


def metadata_yaml(files: Sequence[str], counts: Sequence[int], version: int = 5, more: str = "") -> str:
    """Return a ``metadata.yaml`` as rosbag2 writes it."""
    names = "\n".join(f"    - {name}" for name in files)
    topics = "\n".join(
        f"    - topic_metadata:\n        name: {topic.name}\n        type: {topic.type}\n"
        f'        serialization_format: cdr\n        offered_qos_profiles: "- history: 3\\n  depth: 0"\n'
        f"      message_count: {count}"
        for topic, count in zip(TOPICS, counts, strict=True)
    )
    return (
        f"rosbag2_bagfile_information:\n  version: {version}\n  storage_identifier: sqlite3\n"
        f"  relative_file_paths:\n{names}\n  duration:\n    nanoseconds: 10\n"
        f"  starting_time:\n    nanoseconds_since_epoch: {START}\n  message_count: {sum(counts)}\n"
        f'  topics_with_message_count:\n{topics}\n  compression_format: ""\n  compression_mode: ""\n{more}'
    )


def imu(time: int, rate: float) -> bytes:
    """Return a sensor_msgs/Imu in CDR."""
    seconds, ns = divmod(time, 10**9)
    head = struct.pack("<iII4s", seconds, ns, 4, b"imu\0")
    none = (0.0,) * 9
    values = (0.0, 0.0, 0.0, 1.0, *none, 0.0, 0.0, rate, *none, 0.1, 0.0, 9.81, *none)
    return b"\0\1\0\0" + head + struct.pack(f"<{len(values)}d", *values)


@cache
def walked() -> bytes:
    """Return the bytes of a database with the messages of ``walk``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.db3"
        write(path, walk()).close()
        return path.read_bytes()


@cache
def robot(count: int = 200, largest: int = 20_000) -> bytes:
    """Return the bytes of a database with the messages of ``walk``, and an inertial unit without a definition."""
    times = [START + n * 10**7 for n in range(count)]
    units = [(3, time, imu(time, n / 100)) for n, time in enumerate(times)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walk.db3"
        messages = sorted([*walk(count, largest), *units], key=lambda message: message[1])
        write(path, messages, (*TOPICS, Topic("/imu", "sensor_msgs/msg/Imu"))).close()
        return path.read_bytes()
