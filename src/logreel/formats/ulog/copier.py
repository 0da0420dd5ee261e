"""Logs copied into a new ULog."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from logreel.errors import LogError
from logreel.formats.ulog.copy_metadata import MetadataCopier
from logreel.formats.ulog.information import OWN
from logreel.formats.ulog.record_copier import copy_files, copy_records
from logreel.formats.ulog.writer import UlogWriter
from logreel.log.log import Channel, Log
from logreel.write.log_copier import Excerpt, LogCopier, metadata_names, try_each
from logreel.write.original import original_of


class UlogCopier(LogCopier):
    """Copies definitions, information, attachments, parameters and defaults byte by byte, and records as they are."""

    writer: UlogWriter

    def __init__(self, writer: UlogWriter) -> None:
        super().__init__(writer)
        self._metadata = MetadataCopier(writer.definitions)

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy definitions, information, attachments, parameters and defaults, as they are written there."""
        writer, metadata = self.writer, self._metadata
        metadata.masking = self.masking
        messages = metadata.add(log, self.replaced_types, self.replaced_metadata)
        writer.head += metadata.take()
        writer.has_defaults |= metadata.has_defaults
        writer.source_header, writer.has_initial_parameters = metadata.header, True
        return messages

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Import metadata, attachments, and initial values of parameters; changes come as messages."""
        self.writer.has_initial_parameters = True
        return self._import_all(log, returns)

    def _import_all(self, log: Log, returns: bool) -> list[str]:
        writer = self.writer
        kept = _own_metadata(log) if returns else {}
        for line in kept.get("formats", ()):
            writer.define(str(line))
        # Reading reorders information; the stored types have the order of the file.
        order = {name: n for n, name in enumerate(kept.get("types", ()))}
        names = [name for name in metadata_names(log) if name != OWN]
        names.sort(key=lambda name: order.get(name, len(order)))
        messages = self.try_each(
            "metadata",
            names,
            lambda name: _import_metadata(writer, kept, name, log.metadata[name]),
            returns,
        )
        # For a ULog, reading gives each text of a list in the metadata as an attachment as well.
        lists = {name: len(value) for name, value in log.metadata.items() if isinstance(value, list | tuple)}
        texts = {
            name + number + suffix
            for name, n in lists.items()
            for number in ["", *(f"-{i}" for i in range(n))]
            for suffix in (".txt", ".xz", ".bin")
        }
        names = [name for name in log.attachments if not (returns and name in texts)]
        parts = kept.get("parts", {})
        messages += self.try_each(
            "attachment", names, lambda name: _import_attachment(writer, log, name, parts), returns
        )
        rows = [ch for ch in log.channels.values() if _holds_parameters(ch)]
        if rows:
            for message in log.messages([ch.topic for ch in rows], order="file"):
                row = message.decode()
                if row["kind"] != "change":
                    writer.parameter_row(row)
        else:
            messages += try_each(
                "parameter", log.parameters, lambda name: _import_parameter(writer, log, name), returns
            )
        return messages

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy records as they are in the file; False for a file that holds several logs."""
        self.writer.begun = copy_records(excerpt, self.writer.out, self.writer.source_clock)
        state = excerpt.log.format_state
        if self.writer.begun and state.lacks_defaults_flag and len(state.found.segments) == 1:
            self.writer.notes.append(
                "the flag bits announce the defaults of parameters now (compatible bit 0)"
            )
        return self.writer.begun

    def copy_files(self, excerpts: Sequence[Excerpt]) -> bool:
        """Copy records of sound files that have the same definitions, information, parameters and message ids."""
        self.writer.begun = copy_files(excerpts, self.writer.out, self.writer.source_clock)
        return self.writer.begun


_NUMBERED = re.compile(r"(.*)-(\d+)(\.\w+)\Z")


def _holds_parameters(ch: Channel) -> bool:
    """Return whether the messages of *ch* are, or were before a conversion, those of the channel ``~parameter``."""
    was = original_of(ch)
    topic, schema = (ch.topic, ch.schema) if was is None else (was.topic, was.schema)
    fields = ["name", "kind", "type", "value"]
    try:
        return (topic.split("@")[0], schema.encoding) == ("~parameter", "ulog") and ch.fields == fields
    except LogError:
        return False


def _import_parameter(writer: UlogWriter, log: Log, name: str) -> None:
    value = log.parameters[name].value
    if value is not None:
        writer.parameter(name, value, None)


def _own_metadata(log: Log) -> dict[str, Any]:
    """Return the details that a converted ULog keeps in its metadata; values of wrong types are left out."""
    own = log.metadata.get(OWN)
    own = own if isinstance(own, Mapping) else {}
    kinds = {"types": Mapping, "parts": Mapping, "raw": Mapping, "formats": list}
    return {name: own[name] for name, kind in kinds.items() if isinstance(own.get(name), kind)}


def _import_metadata(writer: UlogWriter, kept: Mapping[str, Any], name: str, value: Any) -> None:
    rows = kept.get("raw", {}).get(name)
    fit = isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and row[0] in ("I", "M") and isinstance(row[1], bytes)
        for row in rows
    )
    if fit:
        for letter, payload in rows:
            writer.keyed(letter, payload)
        return
    kind = kept.get("types", {}).get(name)
    writer.information(name, value, kind if isinstance(kind, str) else None)


def _import_attachment(writer: UlogWriter, log: Log, name: str, parts: Mapping[str, Any]) -> None:
    one, numbered, number = log.attachments[name], _NUMBERED.match(name), 0
    # Reading numbers several entries of one key.
    if numbered and f"{numbered[1]}-0{numbered[3]}" in log.attachments:
        name, number = numbered[1] + numbered[3], int(numbered[2])
    data, label = one.read(), name.rpartition(".")[0]
    entries = parts.get(label)
    sizes = entries[number] if isinstance(entries, list) and number < len(entries) else None
    if isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes) and sum(sizes) == len(data):
        ends = list(itertools.accumulate(sizes))
        writer.parts(label, [data[end - size : end] for end, size in zip(ends, sizes, strict=True)])
    else:
        writer.attachment(name, data, one.media_type)
