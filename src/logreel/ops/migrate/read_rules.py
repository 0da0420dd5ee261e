"""Reading of rules from files and folders, by suffix."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from logreel.errors import UsageError
from logreel.ops.migrate.bmr import read_bmr
from logreel.ops.migrate.rule import Rule
from logreel.ops.migrate.toml_rules import read_toml

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
