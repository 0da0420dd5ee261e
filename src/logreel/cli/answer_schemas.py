"""JSON Schemas (2020-12) of what the verbs print with ``--json``, made of the classes of the results.

A member of a result is described by its annotation and by the line of the docstring that names it. Only what
``as_dict`` adds, renames or leaves out is said here. Classes are imported when a schema is asked for.
"""

from __future__ import annotations

import builtins
import collections.abc
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from logreel.dataclass import fields as fields_of

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
#: NaN and infinities are texts.
NUMBER: Schema = {"type": ["number", "string"]}
FLAG: Schema = {"type": "boolean"}
OPEN: Schema = {"type": "object"}
_PLAIN: dict[Any, Schema] = {
    str: TEXT, int: WHOLE, float: NUMBER, bool: FLAG, type(None): {"type": "null"}, Any: ANY, bytes: TEXT,
}  # fmt: skip
#: A line of a docstring that describes members: names, two spaces or more, a text.
_DESCRIBED = re.compile(r"^(\w+(?:, \w+)*) {2,}(\S.*)$")
#: A name in an annotation.
_NAME = re.compile(r"[^\W\d]\w*")


def listed(items: Schema, text: str = "") -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items} | ({"description": text} if text else {})


def maybe(schema: Schema) -> Schema:
    """Return the schema of a value, or null."""
    if set(schema) <= {"type", "description"} and "type" in schema:
        known = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": [*known, "null"]}
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def of_type(annotation: Any) -> Schema:
    """Return the schema of values with an annotation; what it cannot describe may be anything."""
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        described = [of_type(part) for part in inner if part is not type(None)]
        if all(set(part) == {"type"} for part in described):
            names = [part["type"] if isinstance(part["type"], list) else [part["type"]] for part in described]
            merged: Schema = {"type": list(dict.fromkeys(name for group in names for name in group))}
        else:
            merged = {"anyOf": described} if len(described) > 1 else described[0]
        return maybe(merged) if type(None) in inner else merged
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin is tuple and inner[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [of_type(part) for part in inner], "items": False}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": of_type(inner[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return listed(of_type(inner[0]))
    if isinstance(annotation, type) and hasattr(annotation, "__dataclass_fields__"):
        return of(annotation)
    return {}


def of(cls: type | str, omit: Iterable[str] = (), optional: Iterable[str] = (), **members: Schema) -> Schema:
    """Return the schema of an object made of a data class.

    cls       the class, or ``module:name`` below ``logreel``
    omit      fields that the object lacks
    optional  members that it may lack
    members   schemas of further members, and of fields whose values are others in the object
    """
    data_class: Any = cls
    if isinstance(cls, str):
        module, _, name = cls.partition(":")
        data_class = getattr(importlib.import_module(f"logreel.{module}"), name)
    texts, hints = descriptions(data_class), typing.get_type_hints(data_class, None, _names(data_class))
    properties: dict[str, Schema] = {}
    for field in fields_of(data_class):
        if field.name in omit:
            continue
        schema = members.pop(field.name, None) or of_type(hints[field.name])
        if field.name in texts and "description" not in schema:
            schema = {**schema, "description": texts[field.name]}
        properties[field.name] = schema
    return closed({**properties, **members}, optional)


def closed(properties: Mapping[str, Schema], optional: Iterable[str] = ()) -> Schema:
    """Return the schema of an object with these members and no others."""
    required = [name for name in properties if name not in set(optional)]
    return {
        "type": "object", "properties": dict(properties), "required": required, "additionalProperties": False,
    }  # fmt: skip


def descriptions(cls: type) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say about their members."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        names: list[str] = []
        # Python 3.13 removes the indentation of docstrings, older ones leave it.
        for line in inspect.cleandoc(base.__dict__.get("__doc__") or "").splitlines():
            match = _DESCRIBED.match(line)
            if match:
                names = match[1].split(", ")
                texts.update(dict.fromkeys(names, match[2]))
            elif names and line.startswith("  ") and line.strip():
                texts.update({name: f"{texts[name]} {line.strip()}" for name in names})
            else:
                names = []
    return texts


class _Unknown:
    """Stands for a class that only type checkers import."""

    def __class_getitem__(cls, item: object) -> type:
        return cls


def _names(cls: type) -> dict[str, Any]:
    """Return what the names in the annotations of a class say; those that only type checkers know say anything."""
    texts = [text for base in cls.__mro__ for text in inspect.get_annotations(base).values()]
    names: dict[str, Any] = dict.fromkeys(_NAME.findall(" ".join(map(str, texts))), _Unknown)
    modules = [importlib.import_module(base.__module__) for base in cls.__mro__]
    for module in reversed((*modules, builtins, collections.abc)):
        names |= module.__dict__
    return names


# ------------------------------------------------------------------------------------------------- the verbs


def _problems() -> Schema:
    return listed(of("errors:Problem", omit=["count"], optional=["file"]), "damage that reading found")


def _answer(**members: Schema) -> Schema:
    """Return the schema of ``draw.echo_answer``."""
    return closed({"path": TEXT, **members, "problems": _problems()})


def _info() -> Schema:
    segment = closed(
        {
            "number": WHOLE,
            "offset": WHOLE,
            "start_ns": maybe(WHOLE),
            "end_ns": maybe(WHOLE),
            "messages": WHOLE,
        }
    )
    return of(
        "ops.inspect.info:Info",
        omit=["utc_offset_ns"],
        optional=["files", "utc_notes"],
        problems=_problems(),
        segments=listed(segment, "the logs in the file, nearly always one"),
    )


def _summary() -> Schema:
    section = closed({"key": TEXT, "title": TEXT, "facts": listed(of("lenses.facts:Fact", omit=["times"]))})
    band = closed({"start_ns": WHOLE, "end_ns": WHOLE, "label": TEXT, "kind": TEXT, "source": TEXT})
    return of("ops.inspect.summary:Summary", sections=listed(section), bands=listed(band))


def _orientation() -> Schema:
    """Return the schema of ``summary --brief``."""
    from logreel.cli.orientation import TOPICS

    return closed(
        {
            "path": TEXT,
            "what": closed({"format": TEXT, "size": WHOLE, "messages": WHOLE, "channels": WHOLE}),
            "when": closed(
                {
                    "utc": {"type": "string", "description": "UTC time of the start; empty if unknown"},
                    "duration": TEXT,
                    "clock": {"type": "string", "description": "what times count from: unix, boot or start"},
                    "start_ns": maybe(WHOLE),
                    "end_ns": maybe(WHOLE),
                }
            ),
            "vehicle": {"type": "object", "additionalProperties": TEXT},
            "damage": closed({"problems": WHOLE, "lost_bytes": WHOLE, "first": TEXT}, ["first"]),
            "happened": listed(TEXT, "facts; !! marks errors, ! warnings"),
            "topics": {
                "type": "object",
                "additionalProperties": TEXT,
                "description": f"type and rate of up to {TOPICS} topics that matter, by name",
            },
        }
    )


def _message() -> Schema:
    message = {"log": TEXT, "topic": TEXT, "time_ns": WHOLE, "utc": TEXT, "data": OPEN}
    return closed(message, ["log", "utc"])


def _line() -> Schema:
    texts = {"time_ns": WHOLE, "level": maybe(WHOLE), "text": TEXT, "source": TEXT, "kind": TEXT}
    return closed({**texts, "repeated": FLAG})


def _parameter() -> Schema:
    value: Schema = {"type": ["number", "string", "null"]}
    change = closed({"time_ns": WHOLE, "value": value})
    return of(
        "log.scan:Parameter",
        value=value,
        final=value,
        changes=listed(change),
        change_count=WHOLE,
        defaults=OPEN,
    )


def _attachment() -> Schema:
    return closed({"name": TEXT, "media_type": TEXT, "size": WHOLE, "file": maybe(TEXT)})


def _usage() -> Schema:
    share = {"ratio": maybe(NUMBER), "share": NUMBER}
    chunk = of("ops.inspect.du:ChunkUsage", ratio=maybe(NUMBER))
    other = closed({"kind": TEXT, "stored_bytes": WHOLE, "share": NUMBER})
    topic = of("ops.inspect.du:TopicUsage", **share)
    return of("ops.inspect.du:Usage", topics=listed(topic), other=listed(other), chunks=listed(chunk))


def _verdict() -> Schema:
    findings = listed(of("errors:Finding", optional=["rule"]))
    return of(
        "ops.inspect.verdict:RunVerdict",
        omit=["fail_on"],
        optional=["error"],
        lines=closed({"kept": WHOLE, "broken": WHOLE, "not_assessed": WHOLE}),
        findings=findings,
        not_assessed=listed(closed({"rule": TEXT, "reason": TEXT})),
        broken=findings,
        failed=FLAG,
    )


def _health() -> Schema:
    detection = of("lenses.facts:Detection", omit=["start", "end"], start_ns=WHOLE, end_ns=WHOLE)

    def named(text: str) -> Schema:
        return listed(closed({"detector": TEXT, text: TEXT}))

    return closed(
        {
            "path": TEXT,
            "format": TEXT,
            "start_ns": maybe(WHOLE),
            "end_ns": maybe(WHOLE),
            "segment": maybe(WHOLE),
            "detections": listed(detection),
            "clean": named("looks_at"),
            "not_assessed": named("reason"),
            "failed": named("error"),
        }
    )


def _diff() -> Schema:
    only: Schema = {"enum": ["a", "b", None]}
    channel = of("ops.inspect.diff:ChannelDiff", only=only)
    return of("ops.inspect.diff:Difference", same=FLAG, channels=listed(channel))


def _tree() -> Schema:
    link = of("meaning.frames:FrameLink", parent=TEXT)
    joint = closed(
        {
            "upper": TEXT,
            "lower": TEXT,
            "static": FLAG,
            "translation": listed(NUMBER),
            "rotation_xyzw": listed(NUMBER),
        }
    )
    findings = listed(of("errors:Finding", optional=["rule"]))
    tree = {"frames": listed(TEXT), "roots": listed(TEXT), "links": listed(link), "findings": findings}
    numbers = maybe(listed(NUMBER))
    looked_up = closed({"time_ns": WHOLE, "translation": numbers, "rotation_xyzw": numbers})
    lookup = _answer(target=TEXT, source=TEXT, transforms=listed(looked_up), chain=listed(TEXT))
    return {"anyOf": [_answer(**tree, joints=listed(joint)), lookup]}


def _rows(**members: Schema) -> Schema:
    """Return the schema of the rows of a query."""
    columns = listed(closed({"name": TEXT, "type": TEXT}))
    return closed({**members, "columns": columns, "rows": listed(OPEN)})


def _with_problems(schema: Schema) -> Schema:
    return closed({**schema["properties"], "problems": _problems()})


def _rewritten(cls: str = "ops.rewrite.target:Rewritten", **members: Schema) -> dict[str, Schema]:
    """Return the members that the verbs that write a log have in common, and *members*."""
    copied = listed(of("ops.rewrite.target:Copied"))
    made = of(cls, omit=["path"], output=TEXT, messages=WHOLE, channels=copied, **members)
    properties: dict[str, Schema] = made["properties"]
    return properties


def _window(**members: Schema) -> Schema:
    """Return the schema of a window around onsets, with *members* before."""
    onset = closed({"time_ns": WHOLE, "condition": TEXT, "values": {"type": "object"}})
    times = {"number": WHOLE, "start_ns": WHOLE, "end_ns": WHOLE}
    return closed({**members, **times, "label": TEXT, "onsets": listed(onset)})


def _of_windows(**members: Schema) -> Schema:
    """Return the schema of an answer that has windows if it was asked for these."""
    windows = {"windows": listed(_window())}
    return closed({"path": TEXT, **members, **windows, "problems": _problems()}, ["windows"])


def _recovered() -> Schema:
    lost = listed(of("ops.rewrite.recover:Loss"))
    return _answer(**_rewritten("ops.rewrite.recover:Recovered", lost_bytes=WHOLE, lost=lost))


def _recorded() -> Schema:
    windows = listed(_window(path=TEXT, messages=WHOLE))
    members = of(
        "ops.record.session:Recorded", omit=["path"], output=TEXT, messages=WHOLE, lost=WHOLE, windows=windows
    )["properties"]
    return closed({"source": TEXT, "sources": listed(TEXT), **members})


def _merged() -> Schema:
    problem = of("errors:Problem", omit=["count"], optional=["file"], path=TEXT)
    return closed({"paths": listed(TEXT), **_rewritten(), "problems": listed(problem)})


def _definition(with_text: bool = False) -> Schema:
    return of(
        "schemas.catalogue:Entry",
        omit=["_text"],
        optional=[] if with_text else ["text"],
        path=maybe(TEXT),
        text=TEXT,
    )


def _definitions() -> Schema:
    entries = listed(_definition())
    added = closed({"added": entries, "known": entries, "problems": listed(TEXT)})
    return {"anyOf": [closed({"definitions": entries}), added]}


def _formats() -> Schema:
    read = closed({"name": TEXT, "title": TEXT, "versions": TEXT, "suffixes": listed(TEXT)})
    return closed(
        {"formats": listed(read), "outputs": listed(closed({"suffix": TEXT, "title": TEXT, "folder": FLAG}))}
    )


def _report() -> Schema:
    damaged = closed({"log": TEXT, "lost_bytes": WHOLE, "problem": TEXT})
    return of("fleet.upkeep:FleetReport", damaged=listed(damaged))


def _geotagged() -> Schema:
    place = {"latitude": NUMBER, "longitude": NUMBER, "altitude": maybe(NUMBER)}
    picture = closed({"name": TEXT, "path": TEXT, "number": maybe(WHOLE), "time_ns": WHOLE, **place})
    return _answer(topic=TEXT, pictures=listed(picture), skipped=listed(TEXT))


def _dataset() -> Schema:
    episode = {
        "episode": WHOLE, "log": TEXT, "start_ns": WHOLE, "end_ns": WHOLE, "utc_offset_ns": maybe(WHOLE),
        "first": WHOLE, "frames": WHOLE, "dropped": WHOLE, "task": TEXT, "sync": OPEN,
    }  # fmt: skip
    return of("outputs.dataset.building:DatasetWritten", frames=WHOLE, episodes=listed(closed(episode)))


def _recording(key: str, **row: Schema) -> Schema:
    """Return the schema of a query of a CARLA recording, with rows of the members *row*."""
    about = {"version": WHOLE, "map": TEXT, "date_unix": WHOLE, "frames": WHOLE, "duration_s": NUMBER}
    return _answer(**about, **{key: listed(closed(row))})


def _events() -> Schema:
    event: Schema = {"enum": ["create", "destroy", "parent", "collision"]}
    return _recording(
        "events", time_ns=WHOLE, frame=WHOLE, event=event, id=WHOLE, other=maybe(WHOLE),
        collision_id=maybe(WHOLE), type=maybe(TEXT), description=maybe(TEXT), location=ANY,
        attributes=maybe(listed(OPEN)),
    )  # fmt: skip


def _collisions() -> Schema:
    sides = {
        f"{name}{n}": schema
        for n in (1, 2)
        for name, schema in {"id": WHOLE, "type": ANY, "hero": FLAG, "description": maybe(TEXT)}.items()
    }
    return _recording("collisions", time_ns=WHOLE, frame=WHOLE, collision_id=WHOLE, **sides)


def _blocked() -> Schema:
    row = {"time_ns": WHOLE, "frame": WHOLE, "id": WHOLE, "description": maybe(TEXT), "duration_s": NUMBER}
    return _recording("blocked", **row)


def _actors() -> Schema:
    attribute = closed({"name": TEXT, "value": TEXT})
    actor = {
        "id": WHOLE, "type": TEXT, "description": TEXT, "role": TEXT, "start_ns": WHOLE, "end_ns": maybe(WHOLE),
        "parent": maybe(WHOLE), "attributes": listed(attribute),
    }  # fmt: skip
    return _answer(actors=listed(closed(actor)))


def _from_trajectories() -> Schema:
    path: Schema = {"type": ["string", "array"], "items": TEXT}
    return closed(
        {
            "path": path,
            **dict.fromkeys(("frames", "actors", "poses"), WHOLE),
            "notes": listed(TEXT),
            "lost": listed(TEXT),
        }
    )


def _steps() -> Schema:
    """Return the schema of a line of ``carla replay``."""
    lists = ("created", "destroyed", "attached", "poses")
    values = ("applied", "weather", "visual_time", "spectator", "not_applied", "stopped")
    return closed(
        {
            "tick": WHOLE,
            "time_ns": WHOLE,
            "frame": maybe(WHOLE),
            **{name: listed(ANY) for name in lists},
            **dict.fromkeys(values, ANY),
        }
    )


def _dump() -> Schema:
    direction: Schema = {"enum": ["from", "to"]}
    return _answer(instance=WHOLE, direction=direction, messages=WHOLE, bytes=WHOLE)


def _bag_metadata() -> Schema:
    return _answer(
        files=listed(TEXT), messages=WHOLE, topics=WHOLE, start_ns=maybe(WHOLE), end_ns=maybe(WHOLE)
    )


def _ledger() -> Schema:
    counts: Schema = {"type": "object", "additionalProperties": WHOLE}
    by_name = dict.fromkeys(("changed", "dropped", "added"), counts)
    return of("ops.rewrite.proof:Ledger", omit=["first", "rows"], **by_name)


def _plotted() -> Schema:
    ends = dict.fromkeys(("start_ns", "end_ns"), maybe(WHOLE)) | dict.fromkeys(("min", "max"), maybe(NUMBER))
    curve = closed({"topic": TEXT, "field": TEXT, "unit": TEXT, "count": WHOLE, **ends})
    panels = listed(closed({"title": TEXT, "curves": listed(curve)}))
    answer = _answer(output=TEXT, panels=panels, left_out=listed(TEXT))
    answer["required"] = [name for name in answer["required"] if name not in ("output", "left_out")]
    return answer


def _notes() -> Schema:
    texts = dict.fromkeys(("id", "title", "text", "author", "created", "colour"), TEXT)
    return _answer(
        file=maybe(TEXT), notes=listed(closed({"begin_ns": WHOLE, "end_ns": maybe(WHOLE), **texts}))
    )


def _reported() -> Schema:
    finding = closed(
        {
            "severity": {"enum": ["error", "warn", "note"]},
            "text": TEXT,
            "source": TEXT,
            "time_ns": maybe(WHOLE),
            "spans_ns": listed(listed(WHOLE)),
        }
    )
    members = {"charts": listed(TEXT), "findings": listed(finding), "left_out": listed(TEXT)}
    answer = _answer(output=TEXT, size=WHOLE, **members)
    answer["required"] = [name for name in answer["required"] if name != "left_out"]
    return answer


def of_other_packages(verb: str) -> Schema:
    """Return the schema of a command that another package adds: what all answers have."""
    schema = _answer(**_SHORTENED) | {"additionalProperties": True, "required": ["path"]}
    return {"$schema": DIALECT, "title": f"logreel {verb} --json", **schema, "description": ABOUT}


#: How the schema of the object of --json is made, by verb.
SCHEMAS: dict[str, Callable[[], Schema]] = {
    "info": _info,
    "summary": lambda: {"anyOf": [_summary(), _orientation()]},
    "cat": lambda: {
        "anyOf": [_answer(messages=listed(_message()), skipped=listed(TEXT)), _message()],
        "description": "with -f one line per message",
    },
    "text": lambda: {
        "anyOf": [_answer(lines=listed(_line())), _line()],
        "description": "with -f one line per line of text",
    },
    "schema": lambda: closed({"path": TEXT, "schemas": listed(of("ops.inspect.schema:SchemaInfo"))}),
    "params": lambda: _answer(parameters=listed(_parameter())),
    "attachments": lambda: _answer(attachments=listed(_attachment())),
    "notes": _notes,
    "stats": lambda: _answer(channels=listed(of("ops.inspect.stats:ChannelStats"))),
    "du": _usage,
    "check": lambda: of(
        "ops.inspect.check:Checked", findings=listed(of("errors:Finding", optional=["rule"]))
    ),
    "ci": _verdict,
    "health": _health,
    "diff": _diff,
    "compare": lambda: of("ops.inspect.compare:Comparison", same=FLAG),
    "tf": _tree,
    "sql": lambda: _with_problems(_rows(paths=listed(TEXT))),
    "convert": lambda: _of_windows(
        **of("outputs.write:Converted", omit=["path"], output=TEXT, ledger=listed(_ledger()))["properties"]
    ),
    "verify": lambda: of("ops.rewrite.proof:Verification", good=FLAG, ledger=listed(_ledger())),
    "geotag": _geotagged,
    "record": _recorded,
    "slice": lambda: _of_windows(**_rewritten()),
    "merge": _merged,
    "split": lambda: _answer(
        output=TEXT, logs=listed(closed({**_rewritten(), "windows": listed(_window())}, ["windows"]))
    ),
    "sort": lambda: _answer(**_rewritten()),
    "edit": lambda: _answer(**_rewritten("ops.edit.edit:Edited")),
    "recover": _recovered,
    "migrate": lambda: _answer(**_rewritten("ops.migrate.migrate:Migrated")),
    "add": lambda: of("ops.add:AddedContent"),
    "index": lambda: closed({"path": {"type": ["string", "array"], "items": TEXT}, "index": TEXT}),
    "plot": _plotted,
    "report": _reported,
    "view": lambda: closed({"url": TEXT, "address": TEXT, "token": TEXT}),
    "formats": _formats,
    "definitions": _definitions,
    "fleet ingest": lambda: of("fleet.ingesting:Ingested"),
    "fleet status": lambda: of("fleet.upkeep:Status"),
    "fleet query": lambda: _rows(path=TEXT),
    "fleet remove": lambda: of("fleet.upkeep:Removed"),
    "fleet report": _report,
    "fleet verify": lambda: of("fleet.upkeep:Verified"),
    "dataset": _dataset,
    "carla info": _events,
    "carla collisions": _collisions,
    "carla blocked": _blocked,
    "carla replay": _steps,
    "carla actors": _actors,
    "carla write": _from_trajectories,
    "rosbag2 metadata": _bag_metadata,
    "ulog gps-dump": _dump,
}
#: What a program must know of all answers.
ABOUT = (
    "One object per log. Times end in _ns and count in ns of the log's clock. With --fields, --limit or --brief, "
    "members and entries can be missing; left_out counts them by place, and ask lists command lines that give them."
)
#: Members that answers have with --limit or --brief.
_SHORTENED: dict[str, Schema] = {
    "left_out": {"type": "object", "additionalProperties": WHOLE},
    "ask": listed(TEXT),
}


def schema_of(verb: str) -> Schema | None:
    """Return the JSON Schema of the object of ``VERB --json``; None for a command of another package.

    verb  name of the command, such as ``info`` or ``carla info``
    """
    make = SCHEMAS.get(verb)
    if make is None:
        return None
    schema = make()
    for branch in _branches(schema):
        branch["properties"] = {**branch["properties"], **_SHORTENED}
    title = f"logreel {verb} --json"
    about = f"{schema['description']}. {ABOUT}" if "description" in schema else ABOUT
    return {"$schema": DIALECT, "title": title, **schema, "description": about}


def _branches(schema: Schema) -> list[Schema]:
    branches: list[Schema] = schema.get("anyOf", [schema])
    return branches


def members(schema: Schema, path: Sequence[str] = ()) -> list[str] | None:
    """Return the names of the members at a path of names, through lists; None if they are those of the log.

    Raises no error for a path that leads nowhere: there are no members then.
    """
    if not schema:
        return None
    if "anyOf" in schema:
        several = [members(branch, path) for branch in schema["anyOf"]]
        known = [names for names in several if names is not None]
        return None if len(known) < len(several) else list(dict.fromkeys(n for names in known for n in names))
    if "items" in schema and schema["items"] is not False:
        return members(schema["items"], path)
    if schema.get("type") != "object":
        return []
    properties, more = schema.get("properties"), schema.get("additionalProperties", True)
    if properties is None:
        if not path:
            return None
        return members(more, path[1:]) if isinstance(more, dict) else None
    if not path:
        return list(properties)
    return members(properties[path[0]], path[1:]) if path[0] in properties else []
