"""The lenses of the channels of a log, recognised once."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from logreel.lenses import Lens, lenses

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

_KNOWN: WeakKeyDictionary[Log, dict[str, list[Lens]]] = WeakKeyDictionary()


def lenses_of(log: Log) -> list[tuple[Channel, list[Lens]]]:
    """Return the channels of *log* that have messages and a lens, in file order, each with its lenses."""
    known = _KNOWN.setdefault(log, {})
    recognised = []
    for topic, ch in log.channels.items():
        if ch.reserved or not len(ch):
            continue
        if topic not in known:
            known[topic] = lenses(ch)
        if known[topic]:
            recognised.append((ch, known[topic]))
    return recognised
