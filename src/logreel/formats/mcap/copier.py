"""Copying of metadata and attachments into a new MCAP."""

from __future__ import annotations

from typing import Any

from logreel.formats.mcap.clock import clock_record, shifted_to_utc
from logreel.formats.mcap.definitions import to_json
from logreel.formats.mcap.found import OWN, FoundFile
from logreel.formats.mcap.writer import McapWriter
from logreel.log.log import Log
from logreel.write.log_copier import LogCopier


class McapCopier(LogCopier):
    """Copies metadata and attachments; of logs of other formats also parameters and clock."""

    writer: McapWriter

    def __init__(self, writer: McapWriter) -> None:
        super().__init__(writer)
        #: Metadata and attachments that were copied.
        self._copied: set[tuple[Any, ...]] = set()

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy metadata and attachments; what is the same in several logs is copied once.

        With the clock ``utc``, times of a log on another clock are shifted as those of its messages.
        """
        state: FoundFile = log.format_state
        shift = log.utc_offset or 0 if self.clock == "utc" else 0
        origin = state.origin
        if origin is not None and shift:
            origin = shifted_to_utc(origin, shift)
        masking = self.masking
        if masking is not None and origin is not None:
            origin = {name: str(masking.value(name, value)) for name, value in origin.items()}
        notes = self.writer.add_origin(log.name, origin)
        for name, entries in state.metadata:
            key: tuple[Any, ...] = ("metadata", name, tuple(entries.items()))
            if name != OWN and key not in self._copied and name not in self.replaced_metadata:
                if masking is not None:
                    name, entries = masking.name("metadata", name), masking.value(name, entries)
                self.writer.metadata(name, entries)
                self._copied.add(key)
        for attached, a in zip(state.attachments, log.attachments.values(), strict=True):
            data = a.read()
            key = ("attachment", attached.name, attached.log_time, attached.create_time, data)
            if key not in self._copied:
                time, created, name = max(0, attached.log_time + shift), attached.create_time, attached.name
                if masking is not None:
                    time, created = masking.time(time), masking.time(created)
                    data, name = masking.content(name, data), masking.name("attachment", name)
                self.writer.attach(name, data, attached.media_type, time, created)
                self._copied.add(key)
        return notes

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import all metadata, parameters and attachments of a log, so that it can be converted back."""
        writer = self.writer
        plain = [ch for ch in log.channels.values() if not ch.reserved]
        if writer.profile is None and plain and all(ch.schema.encoding == "ros1msg" for ch in plain):
            writer.profile = "ros1"
        # Readers use start and end as long as the file has this number of messages.
        utc = self.clock == "utc" and log.utc_offset is not None
        shift = log.utc_offset or 0 if utc else 0
        start, end = (None if time is None else time + shift for time in (log.start, log.end))
        span = start, end, int(log.index.counts.sum())
        parameters = [
            {
                "name": p.name,
                "type": p.type,
                "value": p.value,
                "changes": [[c.time + shift, c.value] for c in p.changes],
                "defaults": dict(p.defaults),
            }
            for p in log.parameters.values()
        ]
        record = {"format": log.format, "version": log.version}
        record |= clock_record(log.epoch, log.utc_offset, utc, span)
        record["metadata"] = to_json(log.metadata)
        record |= {"parameters": to_json({"parameters": parameters})} if parameters else {}
        notes = writer.add_origin(log.name, record)
        for name, attachment in log.attachments.items():
            time = 0 if attachment.time is None else max(0, attachment.time + shift)
            data, created = attachment.read(), attachment.created or 0
            key = ("attachment", name, time, created, data)
            if key not in self._copied:
                writer.attach(name, data, attachment.media_type, time, created)
                self._copied.add(key)
        return notes
