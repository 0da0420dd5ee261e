"""ULogs as MCAP by the names that foxglove/mcap#1751 gives them, beside all that ``Exchange`` writes.

Messages are in topics ``vehicle_attitude/0`` with schemas ``px4.vehicle_attitude``; logged strings and parameters are
also in the channels ``log_message`` and ``parameters``; the profile is ``px4`` and the metadata record ``info`` has the
information of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import UsageError
from logreel.lenses.base import columns
from logreel.log.scan import MADE_OF, Schema
from logreel.ops.rewrite import engine
from logreel.outputs.foxglove.exchange import ENCODING, Encoder, Exchange, Interleaving
from logreel.outputs.foxglove.messages import Rows
from logreel.schemas.protobuf.encoder import texts, type_name
from logreel.schemas.protobuf.types import ProtoField, ProtoMessage

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log
    from logreel.ops.rewrite.parts import Part

#: The profile, which is also the package of the schemas.
PROFILE = "px4"
#: Format of logs that have such names, and its channels that are no messages of the vehicle.
FORMAT, TEXTS, PARAMETERS = "ulog", "~text", "~parameter"
#: Name of the metadata record with the information of the log.
INFO = "info"
LOG_MESSAGE = ProtoMessage(
    f"{PROFILE}.log_message",
    (
        ProtoField("timestamp", 1, "uint64"),
        ProtoField("severity", 2, "uint32"),
        ProtoField("text", 3, "string"),
        ProtoField("tag", 4, "uint32"),
    ),
)
PARAMETER = ProtoMessage(
    f"{PROFILE}.parameter",
    (ProtoField("name", 1, "string"), ProtoField("value", 2, "double"), ProtoField("default", 3, "bool")),
)


def topic_of(ch: Channel) -> str:
    """Return the topic of a channel of a ULog: ``sensor_accel/1``; that of another channel is its own."""
    number = ch.metadata.get("multi_id")
    return ch.topic if number is None or ch.reserved else f"{ch.schema.name}/{number}"


@dataclass
class Px4Names(Exchange):
    """``Exchange`` with the names of foxglove/mcap#1751."""

    def _plan(self, part: Part) -> Interleaving | None:
        is_new = id(part.log) not in self._plans
        plan = super()._plan(part)
        if plan is None or not is_new:
            return plan
        instead = {number: _renamed(encoder) for number, encoder in plan.instead.items()}
        named = Interleaving(instead, [*map(_below, plan.added), *_added(part.channels)], plan.skipped)
        self._plans[id(part.log)] = named
        return named

    def channels(
        self, new: engine.NewLog, channels: Sequence[engine.NewChannel]
    ) -> Sequence[engine.NewChannel]:
        """Return the channels with other names and schemas, those that are added; set the profile and metadata."""
        for part in new.parts:
            if part.log.format != FORMAT:
                raise UsageError(
                    f"only ULogs have such names, not {part.log.name}", hint="leave out names='mcap'"
                )
        translated = super().channels(new, channels)
        for channel in translated:
            if channel.source is not None and not channel.is_named:
                channel.topic = topic_of(channel.source)
        writer: Any = new.format_writer
        # The profile says what all messages are.
        writer.mixes_encodings = any(
            not isinstance(ch.schema, Schema) or ch.schema.encoding != ENCODING for ch in translated
        )
        writer.profile = new.options.get("profile") or PROFILE
        info = dict(_info(new.parts[0].log))
        if info:
            # What is made of other metadata is not converted back.
            new.metadata[INFO] = {**info, MADE_OF: FORMAT}
        return translated


def _renamed(encoder: Encoder) -> Encoder:
    """Return the Encoder of a channel of messages with the schema ``px4.<message>``; other channels keep theirs."""
    if encoder.source.reserved:
        return encoder
    name = type_name(PROFILE, encoder.source.schema.name)
    message = ProtoMessage(
        name, tuple(_moved(field, encoder.message.name, name) for field in encoder.message.fields)
    )
    # As text it is metadata of the channel for every reader; ORIGINAL has the number.
    metadata = {**encoder.metadata, "multi_id": str(encoder.source.metadata.get("multi_id", 0))}
    return replace(encoder, topic=topic_of(encoder.source), message=message, metadata=metadata)


def _moved(field: ProtoField, old: str, new: str) -> ProtoField:
    """Return a field whose type is nested in the message that is now called *new*."""
    message = field.kind
    if not isinstance(message, ProtoMessage) or not message.name.startswith(f"{old}."):
        return field
    inner = tuple(_moved(member, old, new) for member in message.fields)
    return replace(field, kind=ProtoMessage(f"{new}{message.name[len(old) :]}", inner))


def _below(encoder: Encoder) -> Encoder:
    """Return an Encoder of an added channel, whose topic begins with that of the messages that it is made of."""
    topic = topic_of(encoder.source)
    ending = encoder.topic.removeprefix(encoder.source.topic)
    return replace(encoder, topic=f"{topic}{ending}", metadata={**encoder.metadata, MADE_OF: topic})


def _added(channels: Sequence[Channel]) -> Iterator[Encoder]:
    """Yield Encoders of the channels for logged strings and parameters, as far as these are chosen."""
    chosen = {ch.topic: ch for ch in channels}
    for source, topic, message, fill in (
        (TEXTS, "log_message", LOG_MESSAGE, _log_messages),
        (PARAMETERS, "parameters", PARAMETER, _parameters),
    ):
        ch = chosen.get(source)
        if ch is not None and len(ch):
            yield Encoder(ch, topic, message, fill, {MADE_OF: source})


def _log_messages(ch: Channel, start: int | None, end: int | None) -> Rows:
    lines = columns(ch, ["level", "tag", "text"], start, end)
    # The fields are those of PX4: microseconds since boot, also where the times of the messages are UTC.
    return lines.time, {
        "timestamp": (lines.time // 1000).astype(np.uint64),
        "severity": lines.values["level"].astype(np.uint32),
        "text": texts([str(text) for text in lines.values["text"].tolist()]),
        "tag": lines.values["tag"].astype(np.uint32),
    }


def _parameters(ch: Channel, start: int | None, end: int | None) -> Rows:
    known = columns(ch, ["name", "kind", "value"], start, end)
    is_default = [str(state).endswith("default") for state in known.values["kind"].tolist()]
    return known.time, {
        "name": texts([str(name) for name in known.values["name"].tolist()]),
        "value": known.values["value"].astype(np.float64),
        "default": np.array(is_default, np.bool_),
    }


def _info(log: Log) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the information of a ULog: numbers and text; lists of several values one by line."""
    for name, value in log.metadata.items():
        if isinstance(value, bytes | Mapping):
            continue
        if isinstance(value, list | tuple):
            parts = [
                part
                for several in value
                for part in (several if isinstance(several, list | tuple) else [several])
            ]
            if all(isinstance(part, str) for part in parts):
                yield name, "\n".join(parts)
        else:
            yield name, str(value)
