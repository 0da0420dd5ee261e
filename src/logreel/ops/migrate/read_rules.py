"""Rules of migration from files and folders: those in TOML are read here, those of ROS by ``bmr``."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from logreel.errors import DefinitionError, UsageError
from logreel.ops.migrate.bmr import read_bmr
from logreel.ops.migrate.derived import derived
from logreel.ops.migrate.field_changes import Change, Mapped, MissingSourceError, parse_path
from logreel.ops.migrate.rule import BoundRule, Rule
from logreel.ops.migrate.types import NAMED, TypeVersion, from_text
from logreel.schemas.ros1msg import Registry

#: Suffixes of rule files of ROS.
ROS_SUFFIXES = (".bmr", ".py")
SUFFIXES = (*ROS_SUFFIXES, ".toml")


def read_rules(paths: Iterable[str | os.PathLike[str]]) -> list[Rule]:
    """Return the rules of all files; of a folder, those of the rule files in and below it, by name.

    Raises UsageError for a path without rules, and the errors of ``read_bmr`` and ``read_toml``.
    """
    rules = []
    for path in map(Path, paths):
        files = [path]
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.suffix in (".bmr", ".toml"))
            if not files:
                raise UsageError("there is no rule file (*.bmr, *.toml) in this folder", path=str(path))
        for file in files:
            rules += _read(file)
    return rules


def _read(file: Path) -> list[Rule]:
    if file.suffix not in SUFFIXES:
        raise UsageError(f"rules are read from files *{', *'.join(SUFFIXES)}", path=str(file))
    try:
        found = read_toml(file) if file.suffix == ".toml" else read_bmr(file)
    except OSError as error:
        raise UsageError(f"the rules cannot be read: {error.strerror}", path=str(file)) from None
    if not found:
        raise UsageError("there is no rule in this file", path=str(file))
    return found


#: Largest rule file.
MAX_BYTES = 16 << 20
_RULE_KEYS = {
    *(
        "type",
        "to",
        "md5",
        "version",
        "to_version",
        "order",
        "definition",
        "old_definition",
        "fields",
        "rename",
    ),
    *("remove", "topic", "valid"),
}
_FIELD_KEYS = {"from", "type", "value", "scale", "offset", "values", "overflow", "unit"}
_MD5 = re.compile(r"[0-9a-f]{32}")


def read_toml(path: str | os.PathLike[str]) -> list[Rule]:
    """Return the rules of a file, in its order; raises UsageError for a file that is no TOML or has unknown keys."""
    name = os.fspath(path)
    if Path(path).stat().st_size > MAX_BYTES:
        raise UsageError(f"a rule file of more than {MAX_BYTES >> 20} MiB", path=name)
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"no TOML: {error}", path=name) from None
    rules = content.pop("rule", [])
    if content or not isinstance(rules, list) or not all(isinstance(one, dict) for one in rules):
        raise UsageError("a rule file has a table [[rule]] for each rule, and nothing else", path=name)
    return [_TomlRule(name, number, one).rule() for number, one in enumerate(rules, 1)]


class _TomlRule:
    """One table ``[[rule]]``."""

    def __init__(self, file: str, number: int, table: Mapping[str, Any]) -> None:
        self.file, self.number, self.table = file, number, table
        self.location = f"{file}:rule {number}"
        unknown = sorted(table.keys() - _RULE_KEYS)
        if unknown:
            self.wrong(f"there is no key {unknown[0]!r}; there are {', '.join(sorted(_RULE_KEYS))}")
        if table.get("valid", True) is not True:
            self.wrong("is not complete: fill in its fields, then remove valid")
        self.type = self.text("type") or self.wrong("needs type, the name of the type")
        self.to = self.text("to") or self.type
        self.md5, self.version = self.text("md5"), str(table.get("version", ""))
        if self.md5 and not _MD5.fullmatch(self.md5):
            self.wrong(f"md5 is {self.md5!r:.40}, not 32 digits of 0-9 a-f")
        self.definition, self.old_definition = self.text("definition"), self.text("old_definition")
        self.remove = self.names("remove")
        self.changes = self.field_changes()
        self.known: dict[str, BoundRule] = {}

    def wrong(self, text: str) -> NoReturn:
        raise UsageError(f"rule {self.number} {text}", path=self.file)

    def text(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str):
            self.wrong(f"needs a text as {key}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self.wrong(f"needs a list of fields as {key}")
        return tuple(value)

    def field_changes(self) -> dict[tuple[str, ...], Change]:
        """Return the changes by path of the new field; ``rename`` is short for fields with ``from`` alone."""
        renamed, fields = self.table.get("rename", {}), self.table.get("fields", {})
        if not isinstance(renamed, dict) or not all(isinstance(one, str) for one in renamed.values()):
            self.wrong("needs a table of old = new names as rename")
        if not isinstance(fields, dict):
            self.wrong("needs a table of fields as fields")
        given = {new: {"from": old} for old, new in renamed.items()} | fields
        found: dict[tuple[str, ...], Change] = {}
        for name, one in given.items():
            path = tuple(part for part, _ in self.path(name))
            found[path] = self.change(name, {"from": one} if isinstance(one, str) else one)
        return found

    def path(self, text: str) -> list[tuple[str, int | None]]:
        try:
            return parse_path(text)
        except UsageError as error:
            self.wrong(error.text)

    def change(self, name: str, table: Any) -> Change:
        if not isinstance(table, dict) or table.keys() - _FIELD_KEYS:
            self.wrong(f"field {name!r} needs some of: {', '.join(sorted(_FIELD_KEYS))}")
        if "from" in table and "value" in table:
            self.wrong(f"field {name!r} has both from and value")
        kind, unit, values = table.get("type", ""), table.get("unit"), table.get("values", {})
        scale, offset = table.get("scale", 1), table.get("offset", 0)
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (scale, offset))
        if not (isinstance(kind, str) and isinstance(values, dict) and numbers):
            self.wrong(f"field {name!r}: type is a text, values a table, scale and offset are numbers")
        if table.get("overflow", "leave-out") not in ("leave-out", "clamp"):
            self.wrong(f"field {name!r}: overflow is 'leave-out' or 'clamp'")
        source = None if "value" in table else self.path(str(table.get("from", name)))
        return Change(
            name,
            source,
            table.get("value"),
            kind,
            scale,
            offset,
            values,
            table.get("overflow") == "clamp",
            None if unit is None else str(unit),
        )

    def rule(self) -> Rule:
        order = self.table.get("order", self.number)
        if not isinstance(order, int):
            self.wrong("needs a whole number as order")
        fixed = None
        if self.old_definition and self.md5:
            old = self._typed(self.old_definition, self.type)
            fixed = self.bind(old)
        return Rule(self.location, self.type, self.to, order, self.bind, fixed)

    def bind(self, old: TypeVersion) -> BoundRule | None:
        """Return the rule for *old*; None if it does not apply to this version.

        A rule without md5 and version applies to every version with the fields that it needs.
        """
        if (self.md5 and self.md5 != old.key) or (self.version and self.version != old.version):
            return None
        if old.identity[1] not in self.known:
            try:
                self.known[old.identity[1]] = self._bound(old)
            except MissingSourceError as error:
                if self.md5 or self.version:
                    self.wrong(f"does not fit {old.label}: {error.text}")
                return None
            except DefinitionError as error:
                self.wrong(f"does not fit {old.label}: {error.text}")
        return self.known[old.identity[1]]

    def _bound(self, version: TypeVersion) -> BoundRule:
        old = version
        if self.old_definition:
            old = self._typed(self.old_definition, self.type, version)
        if self.definition:
            new = self._typed(self.definition, self.to, version)
        else:
            new = derived(old, self.to, self.changes, self.remove)
        stated = str(self.table.get("to_version", ""))
        if stated:
            new = new.with_version(stated)
        elif old.version and not self.definition:
            new = new.with_version(old.version)
        if new.key == old.key and any(
            not one.is_plain or one.source is None for one in self.changes.values()
        ):
            # Other values in the same fields, such as another unit.
            new = replace(new, variant=self.location)
        mapped = Mapped(old, new, self.changes, frozenset(self.remove))
        return BoundRule(
            self.location,
            version,
            new,
            mapped.make,
            mapped.parts,
            exact=bool(self.md5 or self.version),
            layout=old.layout if self.old_definition else None,
            topic=self.text("topic"),
            make_columns=mapped.make_columns,
        )

    def _typed(self, text: str, name: str, like: TypeVersion | None = None) -> TypeVersion:
        """Return the version of a type from the text of its definition, in the language of messages of ROS 1."""
        encoding = NAMED if like is None else like.encoding
        made = from_text(text, name if "/" in name else f"x/{name}", Registry(known=False))
        return made if encoding == NAMED else made.as_plain(name, encoding)


__all__: Sequence[str] = ["read_toml"]
