"""Parameters of a log: selected, and as text for other programs (CSV, YAML, QGroundControl, GNU Octave)."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from logreel.errors import NotFoundError, UsageError
from logreel.log.log import Log
from logreel.log.scan import Parameter, is_same_value
from logreel.log.times import Time, interval
from logreel.log.topic_match import fitting, listed
from logreel.ops.json_values import float_text, safe_text, to_json_values
from logreel.ops.rewrite.selected_log import in_force
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable


def params(
    log: Openable | Log,
    patterns: str | Iterable[str] | None = None,
    *,
    changed: bool = False,
    defaults: bool = False,
    start: Time | None = None,
    end: Time | None = None,
) -> list[Parameter]:
    """Return the parameters of a log, sorted by name.

    log       an open Log, or anything that ``logreel.open`` takes
    patterns  names, shell patterns, or ``re:`` and a regular expression; None: all parameters
    changed   True: only those whose value changed while logging; a value that is logged again is no change
    defaults  True: only those whose value differs from a default
    start, end  half-open interval: values in force at its start, and changes in it

    With *changed* and *defaults*, those to which one of the two applies. Raises NotFoundError for a name or pattern
    without match, if the log has parameters, and UsageError for an invalid regular expression.
    """
    with as_open_log(log) as opened:
        known, path = opened.parameters, opened.name
        if start is not None or end is not None:
            span = interval(opened, start, end)
            known = {name: in_force(parameter, *span) for name, parameter in known.items()}
    names = set(known)
    if patterns is not None:
        names = {name for want in listed(patterns) for name in _fitting(names, want, path)}
    selected = sorted((known[name] for name in names), key=lambda p: p.name)
    if not (changed or defaults):
        return selected
    return [p for p in selected if (changed and p.real_changes) or (defaults and differs(p))]


def _fitting(known: set[str], want: str, path: str) -> set[str]:
    """Return the names that *want* selects; raises NotFoundError if there are names, but none fits."""
    names = fitting(known, want)
    if known and not names:
        raise NotFoundError("parameter", want, sorted(known), path=path)
    return names


def differs(parameter: Parameter) -> bool:
    """Return whether a default of *parameter* is known and differs from its first value."""
    value = parameter.value
    if value is None and parameter.changes:
        value = parameter.changes[0].value
    return any(not is_same_value(default, value) for default in parameter.defaults.values())


def as_dict(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as one entry of ``params --json``."""
    return {
        "name": parameter.name,
        "type": parameter.type,
        "value": to_json_values(parameter.value),
        "final": to_json_values(parameter.final),
        "changes": [{"time_ns": c.time, "value": to_json_values(c.value)} for c in parameter.changes],
        "change_count": len(parameter.real_changes),
        "defaults": to_json_values(dict(parameter.defaults)),
    }


Value = float | int | str
#: Names of the notations.
FORMS = ("csv", "params", "yaml", "history", "octave")
#: Other names of notations.
SYNONYMS = {"qgc": "params"}
#: Types of MAVLink in parameter files of QGroundControl.
_INT32, _REAL32 = 6, 9
#: Names that YAML reads as text without quotes; words such as ``no`` and ``on`` are left out by their length.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{5,}")
#: Characters that YAML does not allow in text, and line breaks.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def with_log(text: str, log: str, delimiter: str, safe_csv: bool, head: bool) -> str:
    """Return CSV of parameters with the name of their log in a first column.

    head  False: leave the line with the names out
    """
    first, *lines = text.splitlines(keepends=True)
    cell = io.StringIO()
    csv.writer(cell, delimiter=delimiter, lineterminator="").writerow([safe_text(log) if safe_csv else log])
    named = [f"{cell.getvalue()}{delimiter}{line}" for line in lines]
    return "".join([f"log{delimiter}{first}", *named] if head else named)


def params_text(
    parameters: Sequence[Parameter],
    form: str,
    skipped: list[str],
    *,
    delimiter: str = ",",
    initial: bool = False,
    final: bool = False,
    timestamps: bool = False,
    safe_csv: bool = False,
) -> str:
    """Return parameters as text.

    form        ``csv``: a header, and a line for each parameter with type, first and last value, defaults, and the
                number of changes; ``yaml``: a mapping from names to values; ``params`` or ``qgc``: parameter file of
                QGroundControl, tab-separated system, component, name, value, type; ``history``: name, value and later
                values, without a header; ``octave``: text file of GNU Octave with the same values. The last three are
                the outputs of ``ulog_params``.
    skipped     sentences about parameters that the notation cannot hold are appended here
    delimiter   between the values of ``csv`` and ``history``
    initial     ``history``, ``octave``: leave later values out
    final       ``params``, ``yaml``: the last values instead of the first ones
    safe_csv    ``csv``, ``history``: put ``'`` in front of text that a spreadsheet would run as a formula
    timestamps  ``history``: a second line for each parameter with the times of its values in µs; 0 for the first one

    Raises UsageError for another *form*, and for an option that *form* does not have.
    """
    form = SYNONYMS.get(form, form)
    if form not in FORMS:
        raise UsageError(f"parameters are written as {', '.join(map(repr, FORMS))}, not as {form!r}")
    for is_chosen, name, forms in (
        (timestamps, "timestamps", ("history",)),
        (initial, "initial", ("history", "octave")),
        (final, "final", ("params", "yaml")),
        (delimiter != ",", "delimiter", ("csv", "history")),
        (safe_csv, "safe_csv", ("csv", "history")),
    ):
        if is_chosen and form not in forms:
            fits = " and ".join(map(repr, forms))
            raise UsageError(f"{name} is for the form {fits}, not {form!r}", hint=f"leave out {name}=")
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise UsageError(f"a delimiter is one character, not {delimiter!r}")
    if form == "csv":
        return _table(parameters, delimiter, safe_csv)
    if form == "history":
        return _history(parameters, delimiter, initial, timestamps, safe_csv)
    if form == "octave":
        return "".join(_octave(p, initial, skipped) for p in parameters)
    write: Callable[[str, Value | None, list[str]], str] = _yaml if form == "yaml" else _qgc
    return "".join(write(p.name, p.final if final else _first(p), skipped) for p in parameters)


def _first(p: Parameter) -> Value | None:
    return next(iter(_values(p, True)), None)


def _values(p: Parameter, initial: bool) -> list[Value]:
    """Return the values in their order; a parameter that was first logged later begins with that value."""
    later = [change.value for change in p.changes]
    if p.value is None:
        return later[:1] if initial else later
    return [p.value] if initial else [p.value, *later]


def _rows(out: io.StringIO, delimiter: str, safe: bool) -> Callable[[Sequence[Value | None]], object]:
    """Return a function that writes a row of CSV to *out*; *safe*: so that no spreadsheet runs its texts."""
    write = csv.writer(out, delimiter=delimiter, lineterminator="\n").writerow
    if not safe:
        return write
    return lambda row: write([safe_text(cell) if isinstance(cell, str) else cell for cell in row])


def _table(parameters: Sequence[Parameter], delimiter: str, safe: bool) -> str:
    out = io.StringIO()
    write = _rows(out, delimiter, safe)
    kinds = list(dict.fromkeys(origin for p in parameters for origin in p.defaults))
    write(["name", "type", "initial", "final", *(f"{origin}_default" for origin in kinds), "changes"])
    for p in parameters:
        values = [p.value, p.final, *(p.defaults.get(origin) for origin in kinds)]
        texts = [float_text(v) if isinstance(v, float) else v for v in values]
        write([p.name, p.type, *texts, len(p.real_changes)])
    return out.getvalue()


def _history(
    parameters: Sequence[Parameter], delimiter: str, initial: bool, timestamps: bool, safe: bool
) -> str:
    out = io.StringIO()
    write = _rows(out, delimiter, safe)
    for p in parameters:
        values = _values(p, initial)
        write([p.name, *values])
        if timestamps:
            first = [] if p.value is None else [0]
            write(["timestamp", *[*first, *(change.time // 1000 for change in p.changes)][: len(values)]])
    return out.getvalue()


def _octave(p: Parameter, initial: bool, skipped: list[str]) -> str:
    values = _values(p, initial)
    if not p.name.isprintable() or any(isinstance(value, str) for value in values):
        skipped.append(f"parameter {p.name!r} was left out: it is no number with a plain name")
        return ""
    if len(values) > 1:
        row = "".join(f"{value} " for value in values)
        return f"# name {p.name}\n# type: matrix\n# rows: 1\n# columns: {len(values)}\n{row}\n"
    return f"# name {p.name}\n# type: scalar\n" + "".join(f"{value}\n" for value in values)


def _qgc(name: str, value: Value | None, skipped: list[str]) -> str:
    if not isinstance(value, (int, float)) or not name.isprintable() or not math.isfinite(value):
        skipped.append(f"parameter {name!r} was left out: it is no finite number with a plain name")
        return ""
    return f"1\t1\t{name}\t{value}\t{_REAL32 if isinstance(value, float) else _INT32}\n"


def _yaml(name: str, value: Value | None, skipped: list[str]) -> str:
    if value is None:
        skipped.append(f"parameter {name!r} was left out: the log has no value of it")
        return ""
    key = name if _PLAIN.fullmatch(name) else _quoted(name)
    return f"{key}: {_quoted(value) if isinstance(value, str) else _yaml_number(value)}\n"


def _yaml_number(value: float) -> str:
    """Return a number as YAML 1.1 and 1.2 read it: a fraction before an exponent, and ``.nan``."""
    if isinstance(value, int):
        return str(int(value))
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    number, e, exponent = float_text(value).partition("e")
    number += "" if "." in number else ".0"
    return f"{number}e{exponent if exponent[:1] in '+-' else f'+{exponent}'}" if e else number


def _quoted(text: str) -> str:
    """Return a text in double quotes, with the escapes that JSON and YAML share."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
