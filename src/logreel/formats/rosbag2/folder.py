"""Folders of ROS 2 bags: what ``metadata.yaml`` says, and which files are the parts of the recording.

The text of ``metadata.yaml``, which databases hold, too, is read and written here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from logreel.dataclass import dataclass
from logreel.errors import LogError, Problem
from logreel.formats.rosbag2 import yaml
from logreel.formats.rosbag2.reader import TopicRow
from logreel.registry.format import Folder

METADATA = "metadata.yaml"
#: Key that all of the metadata is below.
ROOT = "rosbag2_bagfile_information"
#: Suffixes of parts; the last one has a file that logreel is recording, or could not complete.
SUFFIXES = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd", ".db3.active")
#: Beginning of the names of custom data that logreel writes: of what a log of another format said of itself.
OWN = "logreel/"
#: Versions of the metadata that are known.
VERSIONS = range(1, 10)


def folder(path: str, names: Collection[str]) -> Folder | None:
    """Return the Folder of a bag; None for a folder that is none.

    A folder is a bag if it has a ``metadata.yaml`` of rosbag2; also without one, as a recorder that crashed leaves it,
    if it has ``NAME_0.db3`` or ``NAME_0.mcap``, where NAME is that of the folder.
    """
    files = [name for name in names if name.lower().endswith(SUFFIXES)]
    if METADATA not in names:
        return _without_metadata(path, files)
    try:
        with open(os.path.join(path, METADATA), encoding="utf-8", errors="replace") as file:
            text = file.read(yaml.MAX_TEXT + 1)
    except OSError as error:
        text, reason = "", f"{METADATA} cannot be read: {error.strerror}"
    else:
        if ROOT not in text and (text.strip("\0 \r\n") or not files):
            return None
        reason = f"{METADATA} is empty"
    if ROOT in text:
        try:
            stated = yaml.parse(text)
            reason = (
                "" if isinstance(stated, dict) and isinstance(stated.get(ROOT), dict) else "it has no mapping"
            )
        except LogError as error:
            reason = f"{METADATA} cannot be read: {error.text}"
        if not reason:
            return _stated(path, files, stated[ROOT])
    return _by_names(path, files, reason)


def _without_metadata(path: str, files: list[str]) -> Folder | None:
    name = os.path.basename(os.path.abspath(path))
    if not any(file in (f"{name}_0{suffix}" for suffix in SUFFIXES) for file in files):
        return None
    own = [file for file in files if _number(file, name) is not None]
    return _by_names(path, own, f"there is no {METADATA}: the recorder was not closed")


def _number(file: str, name: str) -> int | None:
    """Return the number of a part ``NAME_3.db3``; None for other files."""
    number = file.removeprefix(f"{name}_").partition(".")[0]
    return int(number) if file.startswith(f"{name}_") and number.isascii() and number.isdigit() else None


def _by_names(path: str, files: Iterable[str], reason: str) -> Folder | None:
    from logreel.log.part_checks import natural_key

    # Of a part that is there twice, the one that is not compressed.
    parts = sorted(
        {file for file in files if file.removesuffix(".zstd") not in {*files} - {file}}, key=natural_key
    )
    problem = Problem("metadata", 0, 0, False, f"{reason}; its files are taken by their names")
    return Folder([os.path.join(path, part) for part in parts], {}, [problem]) if parts else None


def _stated(path: str, files: list[str], stated: dict[str, Any]) -> Folder | None:
    """Return the Folder of a bag whose metadata could be read."""
    problems = list[Problem]()

    def note(lost: bool, text: str) -> None:
        problems.append(Problem("metadata", 0, int(lost), lost, text))

    version = stated.get("version")
    if version not in VERSIONS:
        note(False, f"{METADATA} has version {version!r:.20}; 1 to {VERSIONS[-1]} are known")
    parts, listed = list[str](), stated.get("relative_file_paths")
    for name in listed if isinstance(listed, list) else []:
        # Paths of early versions have the folder in front; nothing outside of it is opened.
        file = PurePosixPath(str(name).replace("\\", "/")).name
        path_name = next(
            (name for name in (file, f"{file}.zstd", file.removesuffix(".zstd")) if name in files), None
        )
        if path_name is None:
            note(True, f"{file[:80]!r}, which {METADATA} lists, is not in the folder")
        elif path_name not in parts:
            parts.append(path_name)
    more = sorted(set(files) - {*parts})
    if more and not parts:
        note(False, f"{METADATA} lists no file that is there; those in the folder are taken")
        parts = more
    elif more:
        names = ", ".join(more[:3]) + ("…" if len(more) > 3 else "")
        note(False, f"{METADATA} does not list {names}: not read as a part")
    if not parts:
        return None
    return Folder([os.path.join(path, part) for part in parts], _metadata(stated), problems)


def _metadata(stated: dict[str, Any]) -> dict[str, Any]:
    """Return what is shown of the metadata: all but the topics, which the channels have."""
    values: dict[str, Any] = {}
    facts = {"metadata_version": stated.get("version"), "storage": stated.get("storage_identifier")}
    compression = [str(stated.get(name) or "") for name in ("compression_format", "compression_mode")]
    if any(compression):
        facts["compression"] = " ".join(filter(None, compression)).lower()
    if isinstance(count := stated.get("message_count"), int):
        facts["message_count"] = count
    distro = stated.get("ros_distro")
    if isinstance(distro, str) and distro:
        values["ros_distro"] = distro
    return {**values, **custom_of(stated), "rosbag2": facts}


def custom_of(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the metadata of a bag hold besides facts: ``custom_data``, and what it was converted from."""
    custom = stated.get("custom_data")
    if not isinstance(custom, dict):
        return {}
    known = dict(_known(custom))
    rest = {name: value for name, value in custom.items() if name.removeprefix(OWN) not in known}
    return {**({"custom_data": rest} if rest else {}), **known}


def _known(custom: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, text in custom.items():
        if name.startswith(OWN):
            try:
                yield name.removeprefix(OWN), json.loads(text)
            except (TypeError, ValueError, RecursionError):
                continue


# ------------------------------------------------------------------------------------------------- the text of metadata

#: Version with QoS as numbers in a text, which all distributions read, and that with QoS as words, from Kilted on.
NUMBERS, WORDS = 8, 9
#: Start of a bag without messages.
NEVER = (1 << 63) - 1
#: Words for the numbers of QoS, as rmw numbers them.
_QOS = {
    "history": ("system_default", "keep_last", "keep_all", "unknown"),
    "reliability": ("system_default", "reliable", "best_effort", "unknown", "best_available"),
    "durability": ("system_default", "transient_local", "volatile", "unknown", "best_available"),
    "liveliness": (
        "system_default",
        "automatic",
        "manual_by_node",
        "manual_by_topic",
        "unknown",
        "best_available",
    ),
}
_POLICY = re.compile(rf"^([ -]*)({'|'.join(_QOS)}):[ ]*(\w+)[ ]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileSpan:
    """A file, or all files: number of messages, earliest and latest time in ns, None if there are none."""

    path: str
    messages: int
    start: int | None
    end: int | None

    @classmethod
    def of_all(cls, files: Sequence[FileSpan]) -> FileSpan:
        """Return the FileSpan of several files."""
        starts = [file.start for file in files if file.start is not None]
        ends = [file.end for file in files if file.end is not None]
        count = sum(file.messages for file in files)
        return cls("", count, min(starts, default=None), max(ends, default=None))

    def lines(self, indent: str) -> list[str]:
        """Return the lines that say when it begins and how long it is, in the order of files."""
        start, end = (0, 0) if self.start is None or self.end is None else (self.start, self.end)
        return [
            f"{indent}starting_time:",
            f"{indent}  nanoseconds_since_epoch: {NEVER if self.start is None else start}",
            f"{indent}duration:",
            f"{indent}  nanoseconds: {end - start}",
            f"{indent}message_count: {self.messages}",
        ]


def version_for(topics: Iterable[TopicRow]) -> int:
    """Return the version of metadata for topics: that with words if any QoS has words."""
    named = (match[3] for topic in topics for match in _POLICY.finditer(topic.offered_qos_profiles))
    return WORDS if any(not word.isdecimal() for word in named) else NUMBERS


def qos_in(version: int, text: str) -> str:
    """Return QoS as a version of the metadata has them: numbers, or words."""

    def spelled(match: re.Match[str]) -> str:
        known, word = _QOS[match[2]], match[3]
        if word.isdecimal() and version >= WORDS and int(word) < len(known):
            word = known[int(word)]
        elif word in known and version < WORDS:
            word = str(known.index(word))
        return f"{match[1]}{match[2]}: {word}"

    return _POLICY.sub(spelled, text)


def metadata_text(
    storage: str,
    files: Sequence[FileSpan],
    topics: Sequence[tuple[TopicRow, int]],
    distro: str = "",
    custom: Mapping[str, str] | None = None,
    compression: tuple[str, str] = ("", ""),
) -> str:
    """Return the metadata of a bag as text, without the key above all of it.

    storage      ``sqlite3`` or ``mcap``
    topics       topics with the numbers of their messages
    compression  format and mode
    """
    version = version_for(topic for topic, _ in topics)
    every = FileSpan.of_all(files)
    lines = [f"version: {version}", f"storage_identifier: {storage}"]
    start, begin, duration, length, count = every.lines("")
    lines += [duration, length, start, begin, count, "topics_with_message_count:"]
    for topic, messages in topics:
        lines += [
            "  - topic_metadata:",
            f"      name: {yaml.quoted(topic.name)}",
            f"      type: {yaml.quoted(topic.type)}",
        ]
        lines.append(f"      serialization_format: {yaml.quoted(topic.serialization_format)}")
        lines += _qos_lines(version, topic.offered_qos_profiles)
        lines.append(f"      type_description_hash: {yaml.quoted(topic.type_description_hash)}")
        lines.append(f"    message_count: {messages}")
    if not topics:
        lines.append("  []")
    lines += [
        f"compression_format: {yaml.quoted(compression[0])}",
        f"compression_mode: {yaml.quoted(compression[1])}",
    ]
    named = [file for file in files if file.path]
    lines.append("relative_file_paths:")
    lines += [f"  - {yaml.quoted(file.path)}" for file in named] or ["  []"]
    lines.append("files:")
    for file in named:
        lines += [f"  - path: {yaml.quoted(file.path)}", *file.lines("    ")]
    lines += [] if named else ["  []"]
    lines.append("custom_data:" if custom else "custom_data: ~")
    lines += [f"  {yaml.quoted(name)}: {yaml.quoted(value)}" for name, value in (custom or {}).items()]
    return "\n".join([*lines, f"ros_distro: {yaml.quoted(distro)}"])


def _qos_lines(version: int, text: str) -> list[str]:
    text = qos_in(version, text)
    if version < WORDS:
        return [f"      offered_qos_profiles: {yaml.quoted(text)}"]
    lines = [f"        {line}" for line in text.strip("\n").split("\n") if line.strip()]
    return ["      offered_qos_profiles:", *lines] if lines else ["      offered_qos_profiles: []"]


def file_text(text: str) -> str:
    """Return the content of a ``metadata.yaml`` from the metadata of a bag."""
    return f"{ROOT}:\n" + "".join(f"  {line}\n" for line in text.split("\n"))
