"""Bags of ROS 2: SQLite databases (``.db3``), and the folders in which parts of either storage lie with their metadata.

The registry imports this package, and what ``FORMAT`` names when it is used; nobody else imports the modules.
``pages.py`` reads pages, ``wal.py`` the write-ahead log beside a database; ``reader.py`` finds topics and messages;
``scan_builder.py`` makes the Scan. ``folder.py`` says what a folder is, by its ``metadata.yaml``, which ``yaml.py``
reads. Parts in MCAP are logs of the format ``mcap``. ``writer.py`` writes databases, whose pages ``page_writer.py``
makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.registry.format import Format
from logreel.registry.registry import lazy, lazy_scan, lazy_value

if TYPE_CHECKING:
    from logreel.formats.rosbag2.writer import Bag2Writer
    from logreel.io.append_file import Appender
    from logreel.io.source import Source
    from logreel.limits import FixedLimit
    from logreel.log.log import Log


def _sniff(source: Source) -> bool:
    if not source.head.startswith(b"SQLite format 3\0"):
        return False
    from logreel.formats.rosbag2.reader import is_bag

    return is_bag(source)


def _limits() -> Iterator[FixedLimit]:
    from logreel.formats.rosbag2 import pages, reader, yaml
    from logreel.limits import FixedLimit

    yield FixedLimit(
        "rows of a table of a .db3 besides messages",
        reader.MAX_ROWS,
        "bags have hundreds of topics",
        "further rows are a problem `rows`",
    )
    yield FixedLimit(
        "bytes of such a row", reader.MAX_ROW, "definitions have kilobytes", "the row is a problem `record`"
    )
    yield FixedLimit(
        "topics of a .db3 that no row names",
        reader.MAX_UNKNOWN,
        "damage looks like new topics",
        "messages of further ones are a problem `topic`",
    )
    yield FixedLimit(
        "problems of a .db3", pages.MAX_PROBLEMS, "each damaged page is one", "further ones are one problem"
    )
    yield FixedLimit(
        "depth of a metadata.yaml",
        yaml.MAX_DEPTH,
        "files of rosbag2 have six levels",
        "it is a problem `metadata`",
    )
    yield FixedLimit(
        "characters of a metadata.yaml",
        yaml.MAX_TEXT,
        "real ones have kilobytes",
        "it is a problem `metadata`",
    )


def _like(metadata: Mapping[str, Any]) -> dict[str, Any]:
    facts = metadata.get("rosbag2")
    packed = facts.get("compression") if isinstance(facts, Mapping) else None
    return {"compression": "zstd" if packed in ("message", "zstd message") else "none"}


def _append(out: Appender, log: Log, **options: Any) -> Bag2Writer:
    from logreel.formats.rosbag2.writer import append

    return append(out, log, **options)


FORMAT = Format(
    name="rosbag2",
    title="ROS 2 bag",
    suffixes=(".db3",),
    versions="1 to 9",
    sniff=_sniff,
    scan=lazy_scan("logreel.formats.rosbag2.scan_builder:scan"),
    create=lazy("logreel.formats.rosbag2.writer:Bag2Writer"),
    append=_append,
    like=_like,
    copier=lazy("logreel.formats.rosbag2.writer:Bag2Copier"),
    folder=lazy("logreel.formats.rosbag2.folder:folder"),
    new_folder=lazy_value("logreel.formats.rosbag2.writer:NEW_FOLDER"),
    commands=lazy_value("logreel.formats.rosbag2.writer:COMMANDS"),
    file_facts=("rosbag2",),
    splits=True,
    limits=_limits,
)
