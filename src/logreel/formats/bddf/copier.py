"""Copy logs into a new BDDF file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from logreel.formats.bddf import block_copier
from logreel.formats.bddf.descriptors import StructType
from logreel.formats.bddf.scan_builder import ScanBuilder, topic_of
from logreel.formats.bddf.series_declaration import identity, series_key
from logreel.formats.bddf.writer import BddfWriter
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.kernels import bddf
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.log_copier import Excerpt, LogCopier

#: Version of the format that is written.
VERSION = (1, 0, 0)


class BddfCopier(LogCopier):
    """Copies annotations, names of series, additional indexes, and unchanged blocks."""

    writer: BddfWriter

    def __init__(self, writer: BddfWriter) -> None:
        super().__init__(writer)
        #: Offsets of payloads and of their blocks, by id of the log (kept, so that its id is not reused) and channel.
        self._starts: dict[tuple[int, int], tuple[Log, I64, I64]] = {}

    def merge_key(self, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
        """Return a key that is equal for series with the same identifier, type, additional indexes, annotations."""
        return series_key(topic, schema, metadata)

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the topic without the number of its series, which changes where other series are left out."""
        return re.sub(r"\[\d+\]\Z", "", topic)

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import metadata as annotations; keys from another format get its name as their organization."""
        if returns:
            self.writer.reserved = True
        return super().import_foreign(log, returns)

    def import_metadata(self, log: Log, name: str, returns: bool) -> None:
        """Write an entry as an annotation."""
        self.writer.annotate(name, log.metadata[name], "" if returns else log.format)

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy the annotations of the file, and the names of its series."""
        writer, state = self.writer, log.format_state
        writer.reserved = True
        losses = []
        annotations = dict(writer.file.annotations)
        for name, value in state.found.file.annotations.items():
            if name in self.replaced_metadata:
                continue
            if self.masking is not None:
                name, value = self.masking.name("metadata", name), self.masking.value(name, value)
            if annotations.setdefault(name, value) != value:
                losses.append(f"annotation {name!r} has another value in {log.name}: the first one is kept")
        writer.file = replace(writer.file, annotations=annotations)
        for ch, series in zip(log.channels.values(), state.found.series, strict=True):
            writer.base_names.setdefault(ch.topic, topic_of(series))
            if isinstance(series.type, StructType) and log.index.rules[ch.number].synthetic is None:
                writer.structs_with_blocks.add(identity(series))
        signals = writer.schemas.signals
        signals += [one for one in state.signals if one not in signals]
        return losses

    def side_columns(self, log: Log, channel: int, offset: I64) -> I64 | None:
        """Return the additional indexes of data blocks: int64[n, k]."""
        state: ScanBuilder = log.format_state
        names = state.found.series[channel].names
        if not names or log.index.rules[channel].synthetic is not None:
            return None
        if (id(log), channel) not in self._starts:
            self._starts[id(log), channel] = log, log.index.offsets(channel), log.index.starts(channel)
        _, payload, start = self._starts[id(log), channel]
        out = np.zeros((len(offset), len(names)), np.int64)
        if len(offset):
            bddf.gather_numbers(log.index.chunks[FILE], start[payload.searchsorted(offset)], out)
        return out

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy blocks unchanged; return False if that is impossible, see ``block_copier.plan``."""
        plan = block_copier.plan(excerpt)
        if plan is None or (self.repairs and self._note_refused(excerpt.log, plan)):
            return False
        self.writer.begin_copy(plan.file)
        block_copier.copy(excerpt, plan, self.writer.write)
        return True

    def _note_refused(self, log: Log, plan: block_copier.Plan) -> bool:
        """Return whether *plan* copies what the readers of the robot's vendor refuse, and note what is left out."""
        unknown = [one for one in log.problems if one.code == "unknown"]
        if unknown:
            size = sum(one.size for one in unknown)
            text = f"{len(unknown)} blocks of unknown kinds with {size} bytes were left out: other readers refuse them"
            self.writer.notes.append(text)
        # That the version changed is noted when the new file is read back.
        return bool(unknown) or plan.file.version != VERSION
