"""Folders of ROS 2 bags: what ``metadata.yaml`` says, and which files are the parts of the recording."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Any

from logreel.errors import LogError, Problem
from logreel.formats.rosbag2 import yaml
from logreel.registry.format import Folder

METADATA = "metadata.yaml"
#: Key that all of the metadata is below.
ROOT = "rosbag2_bagfile_information"
SUFFIXES = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
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
    distro, custom = stated.get("ros_distro"), stated.get("custom_data")
    if isinstance(distro, str) and distro:
        values["ros_distro"] = distro
    if isinstance(custom, dict) and custom:
        values["custom_data"] = custom
    return {**values, "rosbag2": facts}
