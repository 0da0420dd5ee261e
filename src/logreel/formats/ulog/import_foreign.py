"""What a new ULog takes over from a log of another format, such as one that a ULog was converted to."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logreel.formats.ulog.information import OWN
from logreel.formats.ulog.scan_builder import RESERVED
from logreel.layout.layout import Layout
from logreel.log.log import Log
from logreel.write.import_foreign import each

if TYPE_CHECKING:
    from logreel.formats.ulog.writer import UlogSink

_NUMBERED = re.compile(r"(.*)-(\d+)(\.\w+)\Z")


def adopt(sink: UlogSink, log: Log, returns: bool) -> list[str]:
    """Give *sink* metadata, attachments, and what parameters were at the start; tells what was left out."""
    kept = _kept(log) if returns else {}
    for line in kept.get("formats", ()):
        sink.define(str(line))
    # What people ask for first is told first; in the file it had another order.
    order = {name: n for n, name in enumerate(kept.get("types", ()))}
    names = [name for name in log.metadata if name not in (log.format, OWN)]
    names.sort(key=lambda name: order.get(name, len(order)))
    told = each("metadata", names, lambda name: _metadata(sink, kept, name, log.metadata[name]), returns)
    # Of a ULog, each text of a list in the metadata is an attachment, too.
    lists = {name: len(value) for name, value in log.metadata.items() if isinstance(value, list | tuple)}
    texts = {
        name + number + suffix
        for name, n in lists.items()
        for number in ["", *(f"-{i}" for i in range(n))]
        for suffix in (".txt", ".xz", ".bin")
    }
    names = [name for name in log.attachments if not (returns and name in texts)]
    parts = kept.get("parts", {})
    told += each("attachment", names, lambda name: _attachment(sink, log, name, parts), returns)
    rows = [ch for name, ch in log.channels.items() if name.split("@")[0] == "~parameter"]
    if rows and rows[0].schema.encoding == "ulog":
        decode = Layout(RESERVED["~parameter"], "~parameter").decoder()
        for message in log.messages([ch.topic for ch in rows], order="file"):
            row = decode(message.data)
            if row["kind"] != "change":
                sink.parameter_row(row)
    else:
        told += each("parameter", log.parameters, lambda name: _parameter(sink, log, name), returns)
    return told


def _parameter(sink: UlogSink, log: Log, name: str) -> None:
    value = log.parameters[name].value
    if value is not None:
        sink.parameter(name, value, None)


def _kept(log: Log) -> dict[str, Any]:
    """What the log tells of the ULog that it was, as far as it is of the right kind."""
    told = log.metadata.get(OWN)
    told = told if isinstance(told, Mapping) else {}
    kinds = {"types": Mapping, "parts": Mapping, "raw": Mapping, "formats": list}
    return {name: told[name] for name, kind in kinds.items() if isinstance(told.get(name), kind)}


def _metadata(sink: UlogSink, kept: Mapping[str, Any], name: str, value: Any) -> None:
    rows = kept.get("raw", {}).get(name)
    fit = isinstance(rows, list) and all(
        isinstance(row, list) and len(row) == 2 and row[0] in ("I", "M") and isinstance(row[1], bytes)
        for row in rows
    )
    if fit:
        for letter, payload in rows:
            sink.keyed(letter, payload)
        return
    kind = kept.get("types", {}).get(name)
    sink.information(name, value, kind if isinstance(kind, str) else None)


def _attachment(sink: UlogSink, log: Log, name: str, parts: Mapping[str, Any]) -> None:
    one, numbered, number = log.attachments[name], _NUMBERED.match(name), 0
    # Reading numbers several of one key.
    if numbered and f"{numbered[1]}-0{numbered[3]}" in log.attachments:
        name, number = numbered[1] + numbered[3], int(numbered[2])
    data, label = one.read(), name.rpartition(".")[0]
    entries = parts.get(label)
    sizes = entries[number] if isinstance(entries, list) and number < len(entries) else None
    if isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes) and sum(sizes) == len(data):
        ends = list(itertools.accumulate(sizes))
        sink.parts(label, [data[end - size : end] for end, size in zip(ends, sizes, strict=True)])
    else:
        sink.attachment(name, data, one.media_type)
