"""Copy logs into a new CARLA recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from logreel.formats.carla.copy_metadata import header_of
from logreel.formats.carla.packet_copier import PacketCopier
from logreel.formats.carla.writer import CarlaWriter
from logreel.log.log import Log
from logreel.write.log_copier import Excerpt, LogCopier


class CarlaCopier(LogCopier):
    """Copies the header of the first recording, and unchanged frames."""

    writer: CarlaWriter

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the kind of packet: topics of some kinds depend on the other packets of a recording."""
        return f"packets of kind {self.writer.kinds.get(topic, metadata['packet'])}"

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy the header of the first recording."""
        writer = self.writer
        losses = writer.sources.add(log)
        writer.are_checked = True
        if len(writer.sources.logs) == 1:
            writer.header = header_of(log)
            fields = writer.header_fields
            writer.header_fields = {name: log.metadata.get(name, value) for name, value in fields.items()}
            date = writer.header_fields["date_unix"]
            if self.masking is not None and (new := self.masking.value("date_unix", date)) != date:
                writer.metadata("date_unix", new)
            schemas = writer.schemas
            schemas.dialect = replace(schemas.dialect, wide=log.format_state.found.wide)
        return losses

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import the header; packets of a recording that was converted to another format are not checked again."""
        self.writer.are_checked = returns
        return super().import_foreign(log, returns)

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy frames unchanged."""
        writer = self.writer
        writer.header = header_of(excerpt.log)
        writer.begin()
        copier = PacketCopier(excerpt, writer.out)
        copier.run()
        for kind in copier.inserted:
            writer.extra_messages[f"packets of kind {kind}"] += 1
        writer.end_copy()
        return True
