"""Channels and their fields as people name them: ``topic``, ``topic.field``, ``topic:field,field``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError, NotFoundError, UsageError
from logreel.layout.nodes import Sequence, steps_of
from logreel.log.columns import own_paths
from logreel.log.log import Channel, Log
from logreel.log.topic_match import fitting, listed, topic_and_fields

if TYPE_CHECKING:
    from collections.abc import Callable

#: Topics with the field paths chosen of each; None: all fields.
FieldsByTopic = Mapping[str, "list[str] | None"]


def fields_by_topic(log: Log, wanted: str | Iterable[str]) -> FieldsByTopic:
    """Return the topics that *wanted* means, in the order of the log, with their fields; None: all fields.

    wanted  names or patterns of channels as for ``Log.match``, ``topic.field``, or ``topic:field,field``; text that is
            a name or pattern of channels itself means these. A pattern with fields means the channels that have all of
            them.

    Raises TopicError for an unknown channel, NotFoundError for an unknown field.
    """
    chosen: dict[str, list[str] | None] = {}
    for want in listed(wanted):
        split = None if fitting(log.channels, want) else topic_and_fields(log.channels, want)
        if split is None:
            chosen |= dict.fromkeys(ch.topic for ch in log.match([want]))
            continue
        topics, fields = split
        for topic in _topics_with_fields(log, topics, fields):
            before = chosen.get(topic, [])
            chosen[topic] = None if before is None else list(dict.fromkeys([*before, *fields]))
    return {topic: chosen[topic] for topic in log.channels if topic in chosen}


def _topics_with_fields(log: Log, topics: list[str], fields: list[str]) -> list[str]:
    """Return those of *topics* that have all *fields*; if none has, raise the error of the first one."""
    found = [topic for topic in topics if _has_fields(log[topic], fields)]
    if not found:
        check_fields(log[topics[0]], fields)
    return found


def _has_fields(ch: Channel, fields: list[str]) -> bool:
    try:
        return all(ch.layout.has(path) for path in own_paths(ch, fields) or [])
    except LogError:
        return False


def check_fields(ch: Channel, fields: Iterable[str]) -> None:
    """Raise NotFoundError for a field path that *ch* does not have, DefinitionError if its schema cannot be used."""
    for path in own_paths(ch, fields) or []:
        try:
            steps_of(ch.layout.record, path)
        except NotFoundError as error:
            error.path = ch.log.name
            raise


def field_picker(ch: Channel, fields: list[str] | None) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """Return a function from a decoded message of *ch* to a dict of *fields* by path; None if *fields* is None.

    If messages hold several records, the dict has a list of such dicts, under ``records``.
    """
    if fields is None:
        return None
    record = ch.layout.record
    steps = {name: steps_of(record, path) for name in fields for path in own_paths(ch, name) or []}

    def pick(data: dict[str, Any]) -> dict[str, Any]:
        return {name: _value_at(data, rest) for name, rest in steps.items()}

    if not isinstance(ch.layout.root, Sequence):
        return pick
    # Fields that all records of a message share are stored next to the records.
    return lambda data: {"records": [pick({**data, **one}) for one in data["records"]]}


def _value_at(value: Any, steps: tuple[str | int, ...]) -> Any:
    """Return the value at the path *steps* in *value*; names apply to all items of a list. None if missing."""
    for i, step in enumerate(steps):
        if value is None:
            return None
        if isinstance(step, int):
            if not isinstance(value, list):
                raise UsageError(f"there are no items to take by index in {type(value).__name__}")
            value = value[step] if step < len(value) else None
        elif isinstance(value, list):
            return [_value_at(one, steps[i:]) for one in value]
        else:
            value = value.get(step)
    return value
