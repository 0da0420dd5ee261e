"""What a comparison of two readers or writers tells of one file."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One file, as *ours* and a *peer* have it: how many things were compared, and how many were equal."""

    format: str
    file: str
    ours: str
    peer: str
    compared: int
    equal: int
    note: str
