"""The shape of answers: chosen members, short lists, and answers of at most 2 kB that say what they left out.

Verbs print one object with ``draw.echo_json``. With ``--brief``, ``--fields`` or ``--limit`` it passes through
``ShapedAnswers``, which is imported only then. A brief answer is cut until it fits, the most important entries first;
what is left out is counted by its place in the object, and a command line says how to get it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from logreel.cli import draw

if TYPE_CHECKING:
    import click

#: Most bytes of a brief answer: of the text of all logs together, and of the JSON object of each log.
BRIEF = 2000
#: What is looked at of long lists and texts before they are measured, and of nested values.
MOST, LONGEST, DEPTH = 200, 600, 8
#: Places that ``left_out`` names, and characters of a name there; others are counted together.
PLACES, NAME = 8, 48
#: Bytes that a brief answer may be shorter than it could be.
STEP = 24
#: Bytes for each of several logs from which they get several lines, and below which they are only counted; bytes of the
#: line that says so.
BLOCK, SHORT, HEAD = 500, 90, 400
#: What comes from the log: lists in it are values of the robot, which ``--limit`` does not cut.
VALUES = {"data", "value", "final", "evidence", "metadata", "defaults", "rows", "weather"}
#: Bytes of a row of a table, which is shown as a whole or not at all; more is cut.
RECORD = 160
#: Members whose times are shown in seconds, or as UTC from this number of ns on.
TIMES, UNIX = {"start_ns", "end_ns", "time_ns"}, 10**17
#: Texts by name that are shown on one line; more get a line each.
LINES_FROM = 3
#: What makes a question narrower, by verb.
NARROWER = {
    **dict.fromkeys(("info", "cat", "schema", "stats", "du"), "-t TOPIC"),
    "params": "'PATTERN*'",
    "text": "--level warning",
}
#: What stands behind the members of a cut answer.
LEFT_OUT, ASK = "left_out", "ask"


class View(NamedTuple):
    """What a brief answer shows of the entries of one list.

    keep     members of the entries
    order    key by which the entries are sorted, the most important one first; None: as they are
    """

    keep: tuple[str, ...]
    order: Callable[[Any], Any] | None = None


def _severity(finding: Mapping[str, Any]) -> int:
    return {"error": 0, "warn": 1}.get(finding["severity"], 2)


#: Views by verb and member; other members are shown as they are.
VIEWS: dict[str, dict[str, View]] = {
    "info": {
        "channels": View(("topic", "type", "messages"), lambda c: (c["topic"][:1] == "~", -c["messages"])),
        "problems": View(("code", "text", "offset", "size", "lost")),
        "segments": View(("number", "messages", "start_ns", "end_ns")),
    },
    "stats": {
        "channels": View(
            ("topic", "messages", "rate", "gap_count", "out_of_order", "duplicates", "fields"),
            lambda c: (not (c["gap_count"] or c["out_of_order"] or c["duplicates"]), -c["messages"]),
        ),
    },
    "schema": {"schemas": View(("topic", "name", "fields"))},
    "params": {
        "parameters": View(
            ("name", "value", "final", "change_count", "defaults"),
            lambda p: (not p["change_count"], all(d == p["value"] for d in p["defaults"].values())),
        ),
    },
    "text": {
        "lines": View(("time_ns", "level", "text"), lambda t: (8 if t["level"] is None else t["level"]) > 4)
    },
    "notes": {"notes": View(("id", "begin_ns", "end_ns", "title"))},
    "attachments": {"attachments": View(("name", "media_type", "size"), lambda a: -a["size"])},
    "du": {
        "topics": View(("topic", "messages", "stored_bytes", "share"), lambda t: -t["stored_bytes"]),
        "chunks": View((), None),
    },
    "compare": {
        "deviations": View(("onset_ns", "topic", "field", "state", "text")),
    },
    "check": {"findings": View(("severity", "code", "topic", "text", "offset", "time_ns"), _severity)},
    "health": {
        "detections": View(("severity", "detector", "text", "start_ns", "end_ns"), _severity),
        "clean": View(("detector",)),
        "not_assessed": View(("detector",)),
    },
    "formats": {"formats": View(("name", "title", "suffixes")), "outputs": View(("suffix", "title"))},
    "definitions": {"definitions": View(("name", "version", "language"))},
}


class ShapedAnswers:
    """How one command line wants its answers.

    verb    name of the command, such as ``carla info``
    words   the command line, without the name of the program
    fields  members to print, with dots for members of members; empty: all
    limit   most entries of a list; None: all
    brief   whether an answer has at most 2 kB
    as_json  whether it is printed as JSON; else, if *brief*, as text
    """

    def __init__(
        self,
        context: click.Context,
        words: Sequence[str],
        fields: Sequence[str],
        limit: int | None,
        brief: bool,
        as_json: bool,
    ) -> None:
        self.verb = context.command_path.partition(" ")[2]
        self.fields, self.limit, self.brief, self.as_json = tuple(fields), limit, brief, as_json
        self._words = list(words)
        named = any(param.name == "members" and "--fields" in param.opts for param in context.command.params)
        self._members = "--fields" if named else "--keys"
        self._logs, self._shown = 1, 0
        self._is_checked = not fields or self._check()

    @property
    def most(self) -> int | None:
        """Most entries of a long list that are looked at: others need only be counted; None: all."""
        limits = [n for n in (self.limit, MOST if self.brief else None) if n is not None]
        return min(limits, default=None)

    def share(self, logs: int) -> None:
        """Note that there are so many *logs*, which share the text."""
        self._logs = logs

    def show(
        self, value: Mapping[str, Any], line: bool = False, left: Mapping[str, int] | None = None
    ) -> None:
        """Print *value*, an object that ``json`` can write.

        line  True: JSON on one line, even on a terminal
        left  entries that are missing in it already, by the place of their list
        """
        missing = Missing(left or {})
        shaped: Any = self._cut(self._chosen(value), missing)
        if not self.brief:
            if self.limit is not None:
                shaped = {**shaped, LEFT_OUT: missing.named()}
            draw.write_json(shaped, line)
            return
        shaped = _viewed(shaped, {} if self.fields else VIEWS.get(self.verb, {}), missing)
        if self.as_json:
            self._show_json(shaped, missing)
        else:
            self._show_text(shaped, missing)

    def stream(
        self,
        head: Mapping[str, Any],
        key: str,
        entries: Iterable[Mapping[str, Any]],
        tail: Callable[[], Mapping[str, Any]],
        count: int,
    ) -> None:
        """Print one line of JSON, an object of which the list *key* is made while it is printed.

        head, tail  its members before and behind the list
        count       entries of the list without ``limit``
        """
        write, shown = sys.stdout.write, 0
        before = "{"
        for name, item in self._chosen(head).items():
            write(f"{before}{json.dumps(name)}: {json.dumps(item)}")
            before = ", "
        is_wanted = not self.fields or any(name.partition(".")[0] == key for name in self.fields)
        if is_wanted:
            write(f"{before}{json.dumps(key)}: [")
            before = ""
            for entry in entries:
                shown += 1
                write(before + json.dumps(self._chosen({key: [entry]})[key][0], allow_nan=False))
                before = ", "
            write("]")
            before = ", "
        rest = self._chosen(tail())
        if self.limit is not None:
            rest[LEFT_OUT] = {key: count - shown} if is_wanted and count > shown else {}
        for name, item in rest.items():
            write(f"{before}{json.dumps(name)}: {json.dumps(item)}")
            before = ", "
        write("}\n")

    def show_lines(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print *rows* as one line of JSON each; a brief answer is one object with the first ones."""
        if not self.brief:
            for n, row in enumerate(rows):
                if n == self.limit:
                    return
                draw.write_json(self._chosen(row), True)
            return
        kept: list[Mapping[str, Any]] = []
        count = 0
        for count, row in enumerate(rows, 1):
            if count <= (self.most or 0):
                kept.append(row)
        self.show({"lines": kept}, left={"lines": count - len(kept)})

    def _chosen(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members that --fields names; raises UsageError if *value* shows that there are no such ones."""
        if not self.fields:
            return dict(value)
        if not self._is_checked:
            _check_names(self.verb, {name.partition(".")[0] for name in self.fields}, value)
        wanted: dict[str, Any] = {}
        for name in self.fields:
            at = wanted
            for word in name.split("."):
                at = at.setdefault(word, {})
        picked: dict[str, Any] = _picked(value, wanted)
        return picked

    def _check(self) -> bool:
        """Return whether the names are known to be right; raises UsageError for a wrong one."""
        from logreel.cli.answer_schemas import members, schema_of

        schema = schema_of(self.verb)
        if schema is None:
            return False
        for name in self.fields:
            known: Iterable[str] | None = members(schema)
            for at, word in enumerate(name.split(".")):
                if known is None:
                    break
                _check_names(self.verb, [word], known, name.split(".")[:at])
                known = members(schema, name.split(".")[: at + 1])
        return True

    def _cut(self, value: Any, missing: Missing, place: str = "") -> Any:
        """Return *value* with at most ``limit`` entries in each list that is no value of the robot."""
        if self.limit is None:
            return value
        if isinstance(value, list):
            missing.add(place, len(value) - self.limit)
            kept = value[: self.limit]
            return kept if _name(place) in VALUES else [self._cut(entry, missing, place) for entry in kept]
        if isinstance(value, dict):
            return {
                key: item
                if key in VALUES and (place or not isinstance(item, list))
                else self._cut(item, missing, _inner(place, key))
                for key, item in value.items()
            }
        return value

    def _show_json(self, value: dict[str, Any], missing: Missing) -> None:
        content = {name: item for name, item in value.items() if name != ASK}

        def text(room: int) -> str:
            left = missing.copy()
            fitted: dict[str, Any] = _fitted(content, room, left)
            closing = {LEFT_OUT: left.named(), ASK: self._questions(left, value)}
            return json.dumps({**fitted, **closing}, allow_nan=False)

        sys.stdout.write(_longest(text, BRIEF, BRIEF - 1) + "\n")

    def _show_text(self, value: dict[str, Any], missing: Missing) -> None:
        content = {name: item for name, item in value.items() if name != ASK}
        room = BRIEF // self._logs
        if room < BLOCK:
            self._show_line(content)
            return

        def text(budget: int) -> str:
            left = missing.copy()
            fitted = _fitted(content, budget, left)
            lines = [*_lines(fitted, left), *self._closing(left, value)]
            return "\n".join(map(draw.safe, lines)) + "\n" * (1 + (self._logs > 1))

        # Text has fewer bytes than the JSON that is measured, where it repeats no names.
        sys.stdout.write(_bytes_of(_longest(text, 2 * room, room), room))

    def _show_line(self, value: Mapping[str, Any]) -> None:
        """Print one line for one of several logs; there is a line for the first ones, below one that says so."""
        room = max((BRIEF - HEAD) // self._logs, SHORT)
        most = (BRIEF - HEAD) // room
        self._shown += 1
        if self._shown == 1:
            counted = f"{most} of {self._logs}" if most < self._logs else str(self._logs)
            line = f"logreel {self.verb} FILE --brief"
            draw.echo(f"{counted} logs; one of them: {line}; all: {self._command(['--json'])}")
        if self._shown <= most:
            sys.stdout.write(_bytes_of(_one_line(value), room - 1) + "\n")

    def _closing(self, left: Missing, value: Mapping[str, Any]) -> Iterator[str]:
        if left:
            named = left.named()
            counts = [f"{count} {place}" for place, count in named.items() if "." not in place]
            inner: dict[str, list[str]] = {}
            for place in named:
                if "." in place:
                    inner.setdefault(place.rpartition(".")[0], []).append(_name(place))
            words = [f"of {place}: {', '.join(names)}" for place, names in inner.items()]
            yield "left out: " + "; ".join([*([", ".join(counts)] if counts else []), *words])
        for n, line in enumerate(self._questions(left, value)):
            yield f"{'     ' if n else 'ask: '}{line}"

    def _questions(self, left: Missing, value: Mapping[str, Any]) -> list[str]:
        """Return the command lines that give what was left out."""
        if ASK in value:
            return list(value[ASK])
        if not left:
            return []
        names = list(dict.fromkeys(place.partition(".")[0] for place in left.counts if place))
        is_short = 0 < len(names) < 4 and all(name.isidentifier() and len(name) < NAME // 2 for name in names)
        fields = [self._members, ",".join(names)] if is_short and not self.fields else []
        lines = [self._command(["--json", *fields])]
        narrow = NARROWER.get(self.verb)
        if narrow is not None and not {"-t", "--level"} & {*self._words}:
            lines.append(self._command([narrow, "--brief"]))
        return lines

    def _command(self, more: Sequence[str]) -> str:
        """Return the command line with other options for the answer."""
        return draw.command_line(
            self.verb, [word for word in self._words if word not in ("--brief", "--json")], more
        )


class Missing:
    """Numbers of entries, members and characters that were left out, by place: the names of members, with dots."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = {place: count for place, count in counts.items() if count > 0}

    def __bool__(self) -> bool:
        return bool(self.counts)

    def add(self, place: str, count: int) -> None:
        """Add entries that are left out; nothing if *count* is not positive."""
        if count > 0:
            self.counts[place] = self.counts.get(place, 0) + count

    def copy(self) -> Missing:
        """Return a copy."""
        return Missing(self.counts)

    def named(self) -> dict[str, int]:
        """Return the counts of the first places, and the sum of all others as that of ``…``."""
        named: dict[str, int] = {}
        for place, count in sorted(self.counts.items(), key=lambda pair: "." in pair[0]):
            short = place if _size(place) <= NAME else f"{place[: NAME // 6]}…"
            key = short if short in named or len(named) < PLACES else "…"
            named[key] = named.get(key, 0) + count
        return named


def _check_names(verb: str, names: Iterable[str], known: Iterable[str], before: Sequence[str] = ()) -> None:
    from logreel.errors import UsageError

    listed = [name for name in known if name not in (LEFT_OUT, ASK)]
    for name in names:
        if name not in listed:
            place = f"{'.'.join(before)} of {verb} --json" if before else f"{verb} --json"
            names_known = ", ".join(listed) if listed else "none"
            raise UsageError(f"no member {name!r} in {place}; there are: {names_known}")


def _picked(value: Any, wanted: Mapping[str, Any]) -> Any:
    """Return the *wanted* members of *value*, of each entry if it is a list; names that a member lacks are left out."""
    if not wanted:
        return value
    if isinstance(value, list | tuple):
        return [_picked(entry, wanted) for entry in value]
    if isinstance(value, Mapping):
        return {name: _picked(value[name], inner) for name, inner in wanted.items() if name in value}
    return value


def _inner(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _name(place: str) -> str:
    return place.rpartition(".")[2]


def _viewed(value: dict[str, Any], views: Mapping[str, View], missing: Missing) -> dict[str, Any]:
    """Return *value* with the entries of its lists in the order of their importance, and less of each."""
    result = {}
    for key, item in value.items():
        view = views.get(key)
        if view is None or not isinstance(item, list):
            result[key] = item
            continue
        entries = item if view.order is None else sorted(item, key=view.order)
        result[key] = [{name: entry[name] for name in view.keep if name in entry} for entry in entries]
        if not view.keep:
            missing.add(key, len(item))
            del result[key]
            continue
        for entry in entries:
            for name, content in entry.items():
                if name not in view.keep and content not in (None, "", [], {}, 0):
                    missing.add(_inner(key, name), 1)
    return result


# ------------------------------------------------------------------------------------------------ what fits


def _size(value: Any) -> int:
    """Return the number of bytes of *value* as JSON."""
    return len(json.dumps(value, allow_nan=False))


def _fitted(value: Any, room: int, missing: Missing, place: str = "", depth: int = 0) -> Any:
    """Return as much of *value* as fits into about *room* bytes of JSON, and count what does not."""
    if isinstance(value, str):
        return _short(value, max(room - 2, 8))
    if isinstance(value, Mapping):
        if depth >= DEPTH:
            missing.add(place, len(value))
            return {}
        return _members(value, room, missing, place, depth)
    if isinstance(value, list | tuple):
        if depth >= DEPTH:
            missing.add(place, len(value))
            return []
        return _entries(value, room, missing, place, depth)
    return value


def _longest(text: Callable[[int], str], most: int, room: int) -> str:
    """Return the longest result of *text* that has at most *room* bytes; that of 0 if none has.

    text  makes a text from a number of bytes up to *most*
    """
    best, low, high = text(0), 0, most
    while high - low > STEP:
        middle = (low + high + 1) // 2 if high < most or low else most
        made = text(middle)
        if len(made.encode("utf-8", "backslashreplace")) <= room:
            best, low = made, middle
            if middle == most:
                break
        else:
            high = middle - 1
    return best


def _short(text: str, room: int) -> str:
    """Return a text cut to *room* bytes of JSON, with the number of its characters."""
    if len(text) <= room and _size(text) - 2 <= room:
        return text
    mark = f"… ({len(text)} characters)"
    kept = text[: max(room, 0)]
    while kept and _size(kept + mark) - 2 > room:
        kept = kept[: min(len(kept) - 1, len(kept) * 7 // 8)]
    return kept + mark


def _entries(value: Sequence[Any], room: int, missing: Missing, place: str, depth: int) -> list[Any]:
    """Return the first entries that fit; a large one gets a third of what is left, so that there are several."""
    kept: list[Any] = []
    used = 2
    for n, entry in enumerate(value[:MOST]):
        rest = room - used - 2
        if rest < 4:
            break
        inner = Missing({})
        if isinstance(entry, Mapping | list | tuple) and _wanted(entry, RECORD) < RECORD:
            # A row of a table is shown as a whole.
            fitted = entry if not kept or _size(entry) <= rest else None
        else:
            share = rest if n == len(value) - 1 else max(rest // 3, min(rest, RECORD))
            fitted = _fitted(entry, share, inner, place, depth + 1) if share >= RECORD or not kept else None
        size = _size(fitted)
        if size > rest or (fitted is None and entry is not None):
            break
        kept.append(fitted)
        used += size + 2
        for where, count in inner.counts.items():
            missing.add(where, count)
    missing.add(place, len(value) - len(kept))
    return kept


def _members(value: Mapping[str, Any], room: int, missing: Missing, place: str, depth: int) -> dict[str, Any]:
    """Return the members that fit: short ones first, in their order, then the others, which share what is left."""
    names = list(value)[:MOST]
    missing.add(place, len(value) - len(names))
    sizes = {name: _size(name) + 4 for name in names}
    flexible = [name for name in names if isinstance(value[name], Mapping | list | tuple) and value[name]]
    flexible += [name for name in names if isinstance(value[name], str) and len(value[name]) > 60]
    rest = room - 2
    fixed = [name for name in names if name not in set(flexible)]
    kept: dict[str, Any] = {}
    for name in fixed:
        size = sizes[name] + _size(value[name])
        if size > rest:
            missing.add(place or name, 1)
            continue
        kept[name] = value[name]
        rest -= size
    wanted = {name: _wanted(value[name], room) for name in flexible}
    for n, name in enumerate(sorted(flexible, key=wanted.__getitem__)):
        share = rest // (len(flexible) - n) - sizes[name]
        if share < 10:
            content = value[name]
            missing.add(_inner(place, name), 1 if isinstance(content, str) else len(content))
            continue
        kept[name] = _fitted(value[name], share, missing, _inner(place, name), depth + 1)
        rest -= sizes[name] + _size(kept[name])
    return {name: kept[name] for name in names if name in kept}


def _wanted(value: Any, room: int) -> int:
    """Return the size of *value*, or *room* for what is surely larger."""
    if isinstance(value, str):
        return min(len(value) + 2, room)
    total = 0
    for entry in value.values() if isinstance(value, Mapping) else value:
        total += 3 if isinstance(entry, int | float | bool) or entry is None else 8
        if isinstance(entry, str | Mapping | list | tuple):
            total += _wanted(entry, room)
        if total >= room:
            return room
    return total


# ---------------------------------------------------------------------------------------------------- text


def _text(key: str, value: Any) -> str:
    """Return a value on one line: times in seconds or as UTC, everything else as in JSON, texts without quotes."""
    if key in TIMES and isinstance(value, int) and not isinstance(value, bool):
        from logreel.log.times import seconds_text, utc_text

        return utc_text(value, 3) if value >= UNIX else f"{seconds_text(value, 3)} s"
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={_text(name, item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text("", item) for item in value)
    return value if isinstance(value, str) else json.dumps(value)


def _words(value: Mapping[str, Any], between: str) -> str:
    """Return names and values of an object on one line, without empty ones."""
    return between.join(f"{_label(n)} {_text(n, v)}" for n, v in value.items() if v not in (None, ""))


def _label(key: str) -> str:
    return key.removesuffix("_ns") if key in TIMES else key


def _is_flat(value: Any) -> bool:
    """Return whether *value* fits into the cell of a table."""
    if isinstance(value, list | tuple):
        return all(not isinstance(item, Mapping | list | tuple) for item in value)
    return not isinstance(value, Mapping) or all(
        not isinstance(item, Mapping | list | tuple) for item in value.values()
    )


def _lines(value: Mapping[str, Any], missing: Missing, place: str = "", indent: str = "") -> Iterator[str]:
    """Yield the members of an object as lines: lists of objects as tables, with how many there are in all."""
    for key, item in value.items():
        where = _inner(place, key)
        if item in (None, "", {}) or item == []:
            if item == [] and not place and where not in missing.counts:
                yield f"{key}: none"
            continue
        if not isinstance(item, Mapping | list | tuple):
            yield f"{indent}{_label(key)}: {_text(key, item)}"
            continue
        left = missing.counts.get(where, 0)
        count = f" ({len(item)} of {len(item) + left})" if left else ""
        if isinstance(item, Mapping):
            if len(item) > LINES_FROM and all(isinstance(entry, str) for entry in item.values()):
                yield f"{indent}{key}{count}:"
                yield from draw.table_lines(("", ""), list(item.items()), (), len(indent) + 2)
            elif _is_flat(item):
                yield f"{indent}{key}{count}: {_words(item, '; ')}"
            else:
                yield f"{indent}{key}{count}:"
                yield from _lines(item, missing, where, indent + "  ")
        elif all(isinstance(entry, Mapping) for entry in item):
            yield f"{indent}{key}{count}:"
            yield from _table(item, missing, where, indent + "  ")
        elif any(isinstance(entry, str) and len(entry) > 30 for entry in item):
            yield f"{indent}{key}{count}:"
            yield from (f"{indent}  {_text('', entry)}" for entry in item)
        else:
            yield f"{indent}{key}{count}: {_text('', item)}"


def _table(entries: Sequence[Mapping[str, Any]], missing: Missing, place: str, indent: str) -> Iterator[str]:
    """Yield objects as the rows of a table, or below each other if they hold more."""
    if all(_is_flat(item) for entry in entries for item in entry.values()):
        names = list(dict.fromkeys(name for entry in entries for name in entry))
        used = [name for name in names if any(entry.get(name) not in (None, "", [], {}) for entry in entries)]
        # Types are not shown where they repeat the topics.
        used = [
            n for i, n in enumerate(used) if all(any(e.get(n) != e.get(o) for e in entries) for o in used[:i])
        ]
        if len(used) == 1:
            yield indent + ", ".join(_text(used[0], entry.get(used[0])) for entry in entries)
            return
        rows = [[_text(name, entry.get(name)) for name in used] for entry in entries]
        numbers = [
            n for n, name in enumerate(used) if any(isinstance(e.get(name), int | float) for e in entries)
        ]
        yield from draw.table_lines([_label(name) for name in used], rows, numbers, len(indent))
        return
    for entry in entries:
        flat = {
            name: item for name, item in entry.items() if _is_flat(item) and item not in (None, "", [], {})
        }
        yield indent + "  ".join(_text(name, item) for name, item in flat.items())
        for name, item in entry.items():
            if _is_flat(item):
                continue
            if isinstance(item, list | tuple) and all(
                isinstance(row, Mapping) and all(map(_is_flat, row.values())) for row in item
            ):
                # Such as the fields of each of many types.
                inner = (" ".join(filter(None, (_text(n, v) for n, v in row.items()))) for row in item)
                yield f"{indent}  {name}: {', '.join(inner)}"
            else:
                yield from _lines({name: item}, Missing({}), place, indent + "  ")


def _one_line(value: Mapping[str, Any]) -> str:
    """Return the first things of an object on one line: short values, and the lengths of lists."""
    words = []
    for key, item in value.items():
        if isinstance(item, Mapping):
            words += [
                f"{_label(n)} {_text(n, v)}" for n, v in item.items() if _is_flat(v) and v not in (None, "")
            ]
        elif isinstance(item, list | tuple):
            words += [f"{len(item)} {key}"] * bool(item)
        elif item not in (None, ""):
            words.append(_text(key, item) if key == "path" else f"{_label(key)} {_text(key, item)}")
    return draw.safe(", ".join(words))


def _bytes_of(text: str, room: int) -> str:
    """Return *text* cut to *room* bytes of UTF-8."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= room:
        return data.decode()
    return data[: max(room - 3, 0)].decode("utf-8", "ignore") + "…"
