"""The scripts in ``bench/`` use names that exist, also in the jobs that they run as text in other processes."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
NAME = re.compile(r"\b(?:logreel|support)(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(r"from ((?:logreel|support)[\w.]*) import ([\w, ]+)")


def texts(script: Path) -> list[str]:
    """Return the code of the script and of the jobs in it, without comments and docstrings."""
    tree = ast.parse(script.read_text())
    found = [ast.unparse(tree)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def names(script: Path) -> set[str]:
    """Return the dotted names of logreel in the script."""
    found = set()
    for text in texts(script):
        found.update(NAME.findall(text))
        for module, imported in IMPORT.findall(text):
            found.update(f"{module}.{name.split(' as ')[0].strip()}" for name in imported.split(","))
    return found


def resolve(name: str) -> None:
    """Import what *name* means; raises ImportError or AttributeError if there is no such thing."""
    parts = name.split(".")
    value = import_module(parts[0])
    for end, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            import_module(".".join(parts[:end]))
        value = getattr(value, part)


@pytest.mark.parametrize("script", sorted(BENCH.glob("*.py")), ids=lambda path: path.stem)
def test_names_in_a_bench_exist(script):
    """A module that was moved breaks a bench only when it runs, which CI never does."""
    for name in sorted(names(script)):
        resolve(name)


def test_a_name_that_does_not_exist_is_found():
    """The check itself fails for a module that was moved."""
    with pytest.raises(ImportError):
        resolve("logreel.outputs.mp4")
