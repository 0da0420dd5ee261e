"""Result of comparing two readers or writers on one file."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One file read or written by *ours* and a *peer*: number of compared things, number of equal ones."""

    format: str
    file: str
    ours: str
    peer: str
    compared: int
    equal: int
    note: str
