"""The command ``actors``: the actors of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logreel.registry.commands import Answer

if TYPE_CHECKING:
    from logreel.log.actor import Actor
    from logreel.log.log import Log


def actor_list(log: Log) -> Answer:
    """List all actors: id, type, description, role, times of first frame and removal, parent, attributes."""
    actors = list(log.actors.values())
    columns: dict[str, list[Any]] = {
        "id": [a.id for a in actors],
        "type": [a.type for a in actors],
        "description": [a.description for a in actors],
        "role": [a.attributes.get("role_name", "") for a in actors],
        "start_ns": [a.start for a in actors],
        "end_ns": [a.end for a in actors],
        "parent": [a.parent for a in actors],
        "attributes": [[{"name": k, "value": v} for k, v in a.attributes.items()] for a in actors],
    }

    def lines() -> Iterator[str]:
        yield f"{'id':>6}  {'type':<13}  {'start s':>9}  {'end s':>9}  {'parent':>6}  description"
        for a in actors:
            end = "" if a.end is None else f"{a.end / 1e9:.3f}"
            role = a.attributes.get("role_name")
            yield (
                f"{a.id:>6}  {a.type:<13}  {a.start / 1e9:>9.3f}  {end:>9}  {_parent(a):>6}  {a.description}"
                + (f" ({role})" if role else "")
            )

    return Answer("actors", columns, lines)


def _parent(actor: Actor) -> str:
    return "" if actor.parent is None else str(actor.parent)
