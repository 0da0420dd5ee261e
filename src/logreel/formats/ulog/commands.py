"""Commands for ULogs only: ``logreel ulog …``. PX4 logs the communication with GPS receivers as ``gps_dump``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UsageError
from logreel.log.log import Channel, Log
from logreel.registry.commands import Command, Content, Example, Option

#: Bit of ``len`` that marks bytes that were sent to the receiver.
_TO_DEVICE = 0x80
#: Messages that are decoded at once.
_ROWS = 16_384


def gps_dump(log: Log, instance: int = 0, to_device: bool = False) -> Content:
    """Return the bytes that a GPS receiver sent, or with *to_device* those that it got, in the order of the log.

    instance  number of the receiver: 0 is the main one

    The bytes are UBX, NMEA, RTCM or another protocol of the receiver. Raises LogError for a log without such messages,
    UsageError for a negative *instance*.
    """
    if instance < 0:
        raise UsageError(f"receivers are counted from 0, so none is {instance}")
    channels = [ch for ch in log.channels.values() if ch.schema.name == "gps_dump"]
    if not channels:
        raise LogError(
            "the log has no messages gps_dump: PX4 logs them if its parameter GPS_DUMP_COMM is set",
            path=log.name,
        )
    for ch in channels:
        if missing := {"len", "data"} - {path.partition("[")[0] for path in ch.layout.paths()}:
            raise LogError(f"the messages gps_dump lack the field {missing.pop()!r}", path=log.name)
    sizes = [_sizes(ch, instance, to_device) for ch in channels]
    messages = sum(int(np.count_nonzero(size)) for size in sizes)
    total = sum(int(size.sum()) for size in sizes)
    notes = []
    if total and "~dropout" in log and (dropouts := len(log["~dropout"])):
        notes.append(
            f"the log has {dropouts} dropout{'s' * (dropouts != 1)}: parts of the communication can be missing"
        )
    if not total:
        seen = sorted(
            {int(instance_number) for ch in channels for instance_number in _instances(ch, len(ch)).tolist()}
        )
        notes.append(f"nothing was logged of receiver {instance} in this direction; receivers: {seen}")
    if over := sum(int((_lengths(ch) > _width(ch)).sum()) for ch in channels):
        notes.append(f"{over} messages state more bytes than they have")
    about = {
        "instance": instance,
        "direction": "to" if to_device else "from",
        "messages": messages,
        "bytes": total,
    }
    return Content(lambda: _parts(channels, instance, to_device), about, tuple(notes))


def _width(ch: Channel) -> int:
    batch = next(ch.batches(1, "data"), None)
    return 0 if batch is None else int(batch.schema.field("data").type.list_size)


def _lengths(ch: Channel) -> NDArray[np.int64]:
    """Return int64[n]: bytes that each message states."""
    return np.ma.filled(ch["len"], 0).astype(np.int64) & ~_TO_DEVICE


def _instances(ch: Channel, count: int) -> NDArray[np.int64]:
    """Return int64[n]: number of the receiver; logs of older releases do not say it."""
    if "instance" not in ch.layout.paths():
        return np.zeros(count, np.int64)
    return np.ma.filled(ch["instance"], 0).astype(np.int64)


def _sizes(ch: Channel, instance: int, to_device: bool) -> NDArray[np.int64]:
    """Return int64[n]: wanted bytes of each message; 0 for messages of other receivers and directions."""
    if not len(ch):
        return np.zeros(0, np.int64)
    stated = np.ma.filled(ch["len"], 0).astype(np.int64)
    wanted = ((stated & _TO_DEVICE) != 0) == to_device
    wanted &= _instances(ch, len(ch)) == instance
    sizes: NDArray[np.int64] = np.where(wanted, np.minimum(stated & ~_TO_DEVICE, _width(ch)), 0)
    return sizes


def _parts(channels: list[Channel], instance: int, to_device: bool) -> Iterator[bytes]:
    """Yield the bytes; those of several channels (one per publisher) by time."""
    if len(channels) == 1:
        yield from _parts_of_one(channels[0], _sizes(channels[0], instance, to_device))
        return
    known = {ch: (_sizes(ch, instance, to_device), iter(range(len(ch)))) for ch in channels}
    for message in channels[0].log.messages([ch.topic for ch in channels], order="time"):
        sizes, rows = known[message.channel]
        if size := int(sizes[next(rows)]):
            yield bytes(message.decode()["data"][:size])


def _parts_of_one(ch: Channel, sizes: NDArray[np.int64]) -> Iterator[bytes]:
    at = 0
    for batch in ch.batches(_ROWS, "data"):
        column: Any = batch.column("data")
        data = np.asarray(column.flatten()).reshape(len(column), -1).astype(np.uint8)
        lengths = sizes[at : at + len(data)]
        at += len(data)
        yield data[np.arange(data.shape[1]) < lengths[:, None]].tobytes()


COMMANDS = (
    Command(
        "gps-dump",
        "Extract the raw communication with a GPS receiver, as UBX, NMEA or RTCM.",
        gps_dump,
        (
            Option("instance", ("--instance",), "Number of the receiver: 0 is the main one.", int, 0, "N"),
            Option("to_device", ("--to-device",), "The bytes that were sent to the receiver.", bool, False),
        ),
        (
            Example("logreel ulog gps-dump gps.ulg -o gps.ubx", "what the main receiver sent"),
            Example("logreel ulog gps-dump gps.ulg --to-device -o sent.ubx", "what was sent to it"),
        ),
    ),
)
