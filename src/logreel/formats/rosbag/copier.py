"""Copying of connections and chunk sizes into a new bag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from logreel.formats.rosbag.writer import BagWriter
from logreel.io.arrays import I64
from logreel.log.joined_log import header_map, joined_metadata
from logreel.log.log import Log
from logreel.write.log_copier import LogCopier


class BagCopier(LogCopier):
    """Copies the connections of channels, and how large chunks are."""

    writer: BagWriter

    def copy_metadata(self, log: Log) -> list[str]:
        """Make chunks as large as those of the first bag that has any."""
        self.writer.use_chunk_sizes(log.format_state or ())
        return []

    def merged_metadata(self, metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return metadata with all connections of the channels, each once."""
        return joined_metadata(metadata)

    def side_column_map(self, metadata: Mapping[str, Any], merged: Mapping[str, Any]) -> I64 | None:
        """Return the index in the merged connections of each connection of a channel."""
        return header_map(metadata, merged)

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the topic without the number of its definition, which changes where definitions are left out."""
        return str(metadata.get("topic", topic))
