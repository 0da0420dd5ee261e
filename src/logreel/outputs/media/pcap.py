"""Packets of a Velodyne scanner as a capture file (pcap) of the network between scanner and computer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.lenses.velodyne import PACKET, Packets
from logreel.log.times import SECOND, utc_shift
from logreel.outputs.job import Job
from logreel.outputs.registry import readers

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: Number at the begin of files with times in ns, version, and the link type Ethernet.
_MAGIC, _VERSION, _ETHERNET = 0xA1B23C4D, (2, 4), 1
#: Address and port of a scanner as it is delivered; it sends to all computers.
_SOURCE, _TARGET, _PORT_FROM, _PORT_TO = bytes([192, 168, 1, 201]), b"\xff" * 4, 443, 2368
_MAC_SOURCE, _MAC_TARGET = bytes.fromhex("607688000000"), b"\xff" * 6
_RECORD, _HEADERS = 16, 14 + 20 + 8


def write(out: IO[bytes], job: Job, ch: Channel) -> None:
    """Write the packets of *ch* as Ethernet frames with UDP, in the order of the log.

    Times are UTC if the log tells how its clock relates to it, else those of its clock; times before 1970 and after
    2106 cannot be written and become the nearest one. Addresses and ports are those of a scanner as it is delivered.
    """
    out.write(struct.pack("<IHHiIII", _MAGIC, *_VERSION, 0, 0, 65535, _ETHERNET))
    shift = utc_shift(job.log)
    beyond = count = 0
    for packets in _packets(job, ch):
        time = packets.time + (shift or 0)
        limited = np.clip(time, 0, (1 << 32) * SECOND - 1)
        beyond += int(np.count_nonzero(limited != time))
        out.write(_frames(packets, limited).tobytes())
        count += len(packets)
    job.rows[ch.topic] = count
    job.advance(len(ch))
    if shift is None:
        job.notes.append("the times are those of the log, which does not say how its clock relates to UTC")
    if beyond:
        job.notes.append(f"{beyond} packets of {ch.topic!r} have times that the file cannot hold")


def _packets(job: Job, ch: Channel) -> Iterator[Packets]:
    for read in readers(ch, "packets")[:1]:
        yield from read(ch, job.start, job.end)


def _frames(packets: Packets, time: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return uint8[n, …]: the record of each packet."""
    rows = np.empty((len(packets), _RECORD + _HEADERS + PACKET), np.uint8)
    head = np.empty((len(packets), 4), "<u4")
    head[:, 0], head[:, 1] = time // SECOND, time % SECOND
    head[:, 2:] = _HEADERS + PACKET
    rows[:, :_RECORD] = head.view(np.uint8)
    rows[:, _RECORD : _RECORD + _HEADERS] = np.frombuffer(_headers(), np.uint8)
    data = np.asarray(packets.data)
    rows[:, _RECORD + _HEADERS :] = data[packets.offset[:, None] + np.arange(PACKET)]
    return rows


def _headers() -> bytes:
    """Return the headers of Ethernet, IPv4 and UDP, which are equal for all packets."""
    size = 8 + PACKET
    network = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + size, 0, 0x4000, 64, 17, 0, _SOURCE, _TARGET)
    total = sum(struct.unpack(">10H", network))
    total = (total & 0xFFFF) + (total >> 16)
    network = network[:10] + struct.pack(">H", ~total & 0xFFFF) + network[12:]
    # 0 is no checksum.
    return (
        _MAC_TARGET
        + _MAC_SOURCE
        + b"\x08\x00"
        + network
        + struct.pack(">HHHH", _PORT_FROM, _PORT_TO, size, 0)
    )
