"""rosbags as a reader of folders of ROS 2.

It parses the YAML of each topic of each file, 15 ms for the usual quality of service; here each text is parsed once.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest


@functools.cache
def _parse_once() -> None:
    metadata, reader = (pytest.importorskip(f"rosbags.rosbag2.{name}") for name in ("metadata", "reader"))
    parser = metadata.YAML
    parsed = functools.cache(lambda text: parser(typ="safe").load(text))

    class OneParse:
        """In place of ``ruamel.yaml.YAML``; a text that is no YAML is parsed each time, and raises its error."""

        def __init__(self, typ: str) -> None:
            assert typ == "safe"

        def load(self, text: str) -> Any:
            return copy.deepcopy(parsed(text))

    metadata.YAML = reader.YAML = OneParse


def reader_of_folders() -> Any:
    """Return ``rosbags.rosbag2.Reader``; skip the test if rosbags is not installed."""
    _parse_once()
    return pytest.importorskip("rosbags.rosbag2").Reader


def reader_of_any() -> Any:
    """Return ``rosbags.highlevel.AnyReader``; skip the test if rosbags is not installed."""
    _parse_once()
    return pytest.importorskip("rosbags.highlevel").AnyReader
