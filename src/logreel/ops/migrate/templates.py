"""Templates of rules: what is known of each missing rule, for people to complete."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from logreel.errors import LogError, UsageError
from logreel.log.decrypted import decrypted_notes
from logreel.ops.migrate.paths import Gap
from logreel.ops.migrate.plan import Files, Planner
from logreel.ops.migrate.types import NAMED, REAL_NUMBERS, TIMES, FieldType, TypeVersion, current_name
from logreel.registry.open_logs import as_open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log


def write_template(
    src: Openable | Log,
    path: str | os.PathLike[str],
    *,
    rules: Files = (),
    to: Files = (),
    known: bool = True,
    force: bool = False,
) -> int:
    """Write a file with the beginning of each rule that is missing to migrate a log; return the number of rules.

    path   ``.bmr`` or ``.toml``; nothing is written if no rule is missing
    force  replace *path*

    The other arguments are those of ``migrate``. Types that differ from those that logreel knows count as missing, too.
    """
    suffix = FilePath(path).suffix
    if suffix not in (".bmr", ".toml"):
        raise UsageError("a rule file is *.bmr or *.toml", path=os.fspath(path))
    with as_open_log(src) as log:
        decrypted_notes(log)
        plans = Planner(rules, to, known).plans(log)
    gaps: dict[tuple[object, object], Gap] = {}
    for plan in plans:
        if plan.path is not None and plan.state in ("missing", "differs"):
            gaps |= {(gap.old.identity, gap.new.identity): gap for gap in plan.path.gaps}
    if gaps:
        make = bmr_template if suffix == ".bmr" else toml_template
        text = "\n\n".join(make(gap) for gap in gaps.values())
        try:
            with open(path, "w" if force else "x", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except FileExistsError:
            raise LogError(
                "exists",
                path=os.fspath(path),
                hint="pass force=True to replace it",
            ) from None
    return len(gaps)


def bmr_template(gap: Gap) -> str:
    """Return the class of a rule in the syntax of ROS, with all assignments that are known."""
    old, new = gap.old, gap.new
    pairs: dict[tuple[str, str], None] = {}
    lines = [f"# {reason}" for reason in gap.reasons]
    for name, kind in new.fields.items():
        before = old.fields.get(name)
        if before is None or before.spelled.partition("[")[1:] != kind.spelled.partition("[")[1:]:
            lines.append(f"new_msg.{name} = {_value(kind)}  # {'was ' + before.spelled if before else 'new'}")
        elif before.nested is not None and kind.nested is not None:
            if current_name(before.base) == current_name(kind.base) or before.nested.key == kind.nested.key:
                pairs[_short(before, old), _short(kind, new)] = None
                array = f', "{kind.base}"' if kind.array else ""
                lines.append(f"self.migrate{'_array' * kind.array}(old_msg.{name}, new_msg.{name}{array})")
            else:
                lines.append(f"new_msg.{name} = {_value(kind)}  # was {before.spelled}")
        elif before.base != kind.base:
            lines.append(f"new_msg.{name} = {_value(kind)}  # was {before.spelled}: old_msg.{name}")
        else:
            lines.append(f"new_msg.{name} = old_msg.{name}")
    lines += [
        f"# old_msg.{name} has no place in the new message" for name in old.fields if name not in new.fields
    ]
    body = "".join(f"        {line}\n" for line in [*lines, "pass"])
    shown = "".join(f'        ("{one}", "{other}"),\n' for one, other in pairs)
    label = f"update_{old.name.replace('/', '_')}_{old.key}"
    return (
        f"class {label}(MessageUpdateRule):\n"
        f'    old_type = "{old.name}"\n    old_full_text = """\n{_quoted(old)}\n"""\n\n'
        f'    new_type = "{new.name}"\n    new_full_text = """\n{_quoted(new)}\n"""\n\n'
        f"    order = 0\n    migrated_types = [\n{shown}    ]\n\n    valid = False\n\n"
        f"    def update(self, old_msg, new_msg):\n{body}"
    )


def _quoted(version: TypeVersion) -> str:
    return version.text.strip("\n").replace("\\", "\\\\").replace('"""', "'''")


def _short(kind: FieldType, owner: TypeVersion) -> str:
    """Return the name of a type as rules write it: without the package of the message, or that of Header."""
    package, _, name = kind.base.rpartition("/")
    return name if package in (owner.name.rpartition("/")[0], "std_msgs", "roslib") else kind.base


def _value(kind: FieldType) -> str:
    """Return an expression for a new field."""
    if kind.array:
        if kind.count is None:
            return "b''" if kind.is_bytes else "[]"
        one = _value(FieldType(kind.base, kind.nested))
        return f"bytes({kind.count} * [0])" if kind.is_bytes else f"[{one} for n in range({kind.count})]"
    if kind.nested is not None:
        return f"self.get_new_class('{kind.base}')()"
    if kind.base in TIMES:
        return "rospy.Time(0, 0)" if kind.base == "time" else "rospy.Duration(0, 0)"
    return "''" if kind.base == "string" else "0.0" if kind.base in REAL_NUMBERS else "0"


def toml_template(gap: Gap) -> str:
    """Return a rule in TOML, with the fields that need a source or a value."""
    old, new = gap.old, gap.new
    lines = [f"# {reason}" for reason in gap.reasons]
    lines += ["[[rule]]", f'type = "{old.name}"']
    if old.encoding == NAMED:
        lines.append(f'md5 = "{old.key}"')
    if old.name != new.name:
        lines.append(f'to = "{new.name}"')
    lines += [f"definition = '''\n{new.text.strip(chr(10))}\n'''" if new.text else ""]
    lines.append("valid = false  # complete the fields below, then remove this line")
    gone = [name for name in old.fields if name not in new.fields]
    if gone:
        lines.append(f"remove = {_strings(gone)}")
    lines.append("[rule.fields]")
    lines += list(_toml_fields(gap))
    return "\n".join(line for line in lines if line) + "\n"


def _toml_fields(gap: Gap) -> Iterator[str]:
    for name, kind in gap.new.fields.items():
        before = gap.old.fields.get(name)
        if before is None:
            yield f'{name} = {{ value = {_toml_value(kind)} }}  # new: {kind.spelled}; or {{ from = "…" }}'
        elif before.spelled != kind.spelled and before.nested is None:
            yield f'{name} = {{ from = "{name}" }}  # was {before.spelled}, is {kind.spelled}'


def _toml_value(kind: FieldType) -> str:
    if kind.array:
        return "[]"
    if kind.nested is not None:
        return "{}"
    return '""' if kind.base == "string" else "0.0" if kind.base in REAL_NUMBERS else "0"


def _strings(values: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in values) + "]"
