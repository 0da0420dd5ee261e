"""What a new ULog takes over from a log of another format, such as one that a ULog was converted to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from logreel.formats.ulog.content import RESERVED
from logreel.model.adoption import adopt_metadata, each
from logreel.model.layout import Layout
from logreel.model.log import Log

if TYPE_CHECKING:
    from logreel.formats.ulog.write import UlogSink

_NUMBERED = re.compile(r"(.*)-(\d+)(\.\w+)\Z")


def adopt(sink: UlogSink, log: Log, returns: bool) -> list[str]:
    """Give *sink* metadata, attachments, and what parameters were at the start; tells what was left out."""
    told = adopt_metadata(sink, log, returns)
    # Of a ULog, each text of a list in the metadata is an attachment, too.
    lists = {name: len(value) for name, value in log.metadata.items() if isinstance(value, list | tuple)}
    texts = {f"{name}.txt" for name in lists} | {
        f"{name}-{i}.txt" for name, n in lists.items() for i in range(n)
    }
    names = [name for name in log.attachments if not (returns and name in texts)]
    told += each("attachment", names, lambda name: _attachment(sink, log, name), returns)
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


def _attachment(sink: UlogSink, log: Log, name: str) -> None:
    one, numbered = log.attachments[name], _NUMBERED.match(name)
    # Reading numbers several of one key.
    if numbered and f"{numbered[1]}-0{numbered[3]}" in log.attachments:
        name = numbered[1] + numbered[3]
    sink.attachment(name, one.read(), one.media_type)
