"""Parameters as text for other programs: CSV, GNU Octave, QGroundControl."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from logreel.errors import UsageError
from logreel.log.scan import Parameter

Value = float | int | str
#: Names of the notations.
FORMS = ("csv", "octave", "qgc")
#: Types of MAVLink in parameter files of QGroundControl.
_INT32, _REAL32 = 6, 9


def params_text(
    found: Sequence[Parameter],
    form: str,
    skipped: list[str],
    *,
    delimiter: str = ",",
    initial: bool = False,
    timestamps: bool = False,
) -> str:
    """Return parameters as text in the notation of ``ulog_params``.

    form        ``csv``: name, value and later values, one parameter per line; ``octave``: text file of GNU Octave;
                ``qgc``: parameter file of QGroundControl with the values at the start
    skipped     sentences about parameters that the notation cannot hold are appended here
    delimiter   between the values of ``csv``
    initial     leave later values out
    timestamps  ``csv``: a second line for each parameter with the times of its values in µs; 0 for the first one

    Raises UsageError for another *form*, and for *timestamps* without ``csv``.
    """
    if form not in FORMS:
        raise UsageError(f"parameters are written as {', '.join(map(repr, FORMS))}, not as {form!r}")
    if timestamps and form != "csv":
        raise UsageError("times are written as 'csv' only")
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise UsageError(f"a delimiter is one character, not {delimiter!r}")
    if form == "csv":
        return _csv(found, delimiter, initial, timestamps)
    write = _octave if form == "octave" else _qgc
    return "".join(write(p, initial, skipped) for p in found)


def _values(p: Parameter, initial: bool) -> list[Value]:
    """Return the values in their order; a parameter that was first logged later begins with that value."""
    later = [change.value for change in p.changes]
    if p.value is None:
        return later[:1] if initial else later
    return [p.value] if initial else [p.value, *later]


def _csv(found: Sequence[Parameter], delimiter: str, initial: bool, timestamps: bool) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    for p in found:
        values = _values(p, initial)
        writer.writerow([p.name, *values])
        if timestamps:
            first = [] if p.value is None else [0]
            writer.writerow(
                ["timestamp", *[*first, *(change.time // 1000 for change in p.changes)][: len(values)]]
            )
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


def _qgc(p: Parameter, initial: bool, skipped: list[str]) -> str:
    value = next(iter(_values(p, True)), None)
    if not isinstance(value, (int, float)) or not p.name.isprintable() or not math.isfinite(value):
        skipped.append(f"parameter {p.name!r} was left out: it is no finite number with a plain name")
        return ""
    return f"1\t1\t{p.name}\t{value}\t{_REAL32 if isinstance(value, float) else _INT32}\n"
