"""Rules by which channels of several logs become one, in a merged log and in one that is opened from several files."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from logreel.io.arrays import I64
from logreel.log.schema import Schema

#: Metadata of a channel with several origins: the headers of these, and the side column with the index in them.
HEADERS, CONNECTION = "headers", "connection"


def channel_key(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
    """Return a key that is equal for channels of several logs which become one channel."""
    return topic, schema, metadata.get("md5sum")


def free_name(topic: str, taken: Collection[str]) -> str:
    """Return *topic*, followed by ``[1]``, ``[2]`` … if the name is among those *taken*."""
    names = itertools.chain([topic], (f"{topic}[{n}]" for n in itertools.count(1)))
    return next(name for name in names if name not in taken)


def joined_metadata(metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the metadata of a channel that is joined from several: that of the first, with the headers of all."""
    if len(metadata) == 1 or not any(HEADERS in one for one in metadata):
        return metadata[0]
    headers = [header for one in metadata for header in one.get(HEADERS, ())]
    return {**metadata[0], HEADERS: [h for i, h in enumerate(headers) if h not in headers[:i]]}


def header_map(metadata: Mapping[str, Any], joined: Mapping[str, Any]) -> I64 | None:
    """Return the index in the joined headers of each header of a channel; None if they stay the same."""
    own, every = list(metadata.get(HEADERS, ())), list(joined.get(HEADERS, ()))
    return None if own == every[: len(own)] else np.array([every.index(one) for one in own], np.int64)
