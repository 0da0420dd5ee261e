"""The floors hold: imports point down, formats do not know each other, src keeps the rules of the house."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "logreel"
FLOORS = {
    "kernels": 0,
    "model": 1,
    "schemas": 2,
    "formats": 3,
    "ops": 4,
    "outputs": 5,
    "testing": 5,
    "cli": 6,
    "__main__": 6,
}
EVERYWHERE = {"errors", "_version"}
#: What ``logreel/__init__.py`` may load at first touch, besides what is visible everywhere.
PUBLIC = {"model", "ops", "outputs"}
MAX_LINES = 800
#: A string that is a lazy import by table or import_module; two are groups of entry points.
MODULE_NAME = re.compile(r"(?!logreel\.(?:formats|sinks)$)logreel(\.\w+)+")
BANNED_CALLS = {"print", "eval", "exec"}


class Import(NamedTuple):
    """One module name that a file depends on; *lazy* if it is not loaded together with the file."""

    line: int
    target: str
    lazy: bool


def module_of(path: Path, root: Path) -> tuple[str, ...]:
    """Dotted name of a file as a tuple without the leading ``logreel``: () for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports(tree: ast.AST, package: tuple[str, ...], lazy: bool = False) -> Iterator[Import]:
    """Every logreel module that *tree* names, in import statements or as a string of its own."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level:
                base = ["logreel", *package[: len(package) - node.level + 1], *base]
            # The imported name may itself be a module, as in `from logreel import ops`: judge all of it.
            yield from (Import(node.lineno, ".".join([*base, alias.name]), lazy) for alias in node.names)
        elif isinstance(node, ast.Constant) and MODULE_NAME.fullmatch(str(node.value)):
            yield Import(node.lineno, str(node.value), True)
        inner = lazy or is_type_checking(node)
        inner = inner or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from imports(node, package, inner)


def wrong_import(module: tuple[str, ...], item: Import, root: Path) -> str | None:
    """Why a file must not import this, or None."""
    first, *rest = item.target.split(".")
    if first != "logreel":
        return None
    there = rest[0] if rest else ""
    if there in EVERYWHERE:
        return None
    here = module[0] if module else ""
    if here in EVERYWHERE:
        return f"{here}.py is visible everywhere, so it must not import {item.target}"
    owner = (
        rest[1] if there == "formats" and len(rest) > 1 and (root / "formats" / rest[1]).is_dir() else None
    )
    if owner and module[:2] != ("formats", owner):
        return f"imports the format {owner}: only its own folder may, others go through the registry"
    if here == "":
        if there in FLOORS and not (there in PUBLIC and item.lazy):
            return f"logreel/__init__.py must not load {item.target} on import"
        return None
    if there not in FLOORS:
        # A name of the package itself, such as logreel.open, may stand for any floor below the command line.
        return None if FLOORS[here] == FLOORS["cli"] else f"imports the public package: {item.target}"
    if FLOORS[there] > FLOORS[here]:
        return f"arrow points up, {here} ({FLOORS[here]}) to {there} ({FLOORS[there]}): {item.target}"
    return None


def wrong_words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and reason of everything that has no place in a library reading untrusted bytes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.lineno, "assert vanishes under -O: raise, or record a Problem"
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).removeprefix("builtins.")
            if name in BANNED_CALLS:
                yield node.lineno, f"{name}( has no place in src"
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if "pickle" in ast.unparse(node):
                yield node.lineno, "pickle runs code from data"
        elif (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and ast.unparse(node.value) != "False"
        ):
            yield node.lineno, "pickle runs code from data"


def findings(root: Path) -> list[str]:
    """All breaches below *root*, each as ``file:line: reason``."""
    found = []
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.pyi"), *root.rglob("*.pxd")]):
        name = path.relative_to(root.parent).as_posix()
        text = path.read_text(encoding="utf-8")
        if len(lines := text.splitlines()) > MAX_LINES:
            found.append(f"{name}:{len(lines)}: longer than {MAX_LINES} lines: make it two files")
        if path.suffix == ".pxd":
            continue
        module = module_of(path, root)
        if module and module[0] not in FLOORS and module[0] not in EVERYWHERE:
            found.append(f"{name}:1: stands on no floor; known: {', '.join(FLOORS)}")
            continue
        tree = ast.parse(text, filename=name)
        package = module if path.stem == "__init__" else module[:-1]
        breaches = [(i.line, why) for i in imports(tree, package) if (why := wrong_import(module, i, root))]
        breaches += wrong_words(tree)
        found += [f"{name}:{line}: {why}" for line, why in sorted(set(breaches))]
    return found


def test_source_keeps_the_rules_of_the_house() -> None:
    found = findings(SRC)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("model/a.py", "from logreel.ops import info", "model/a.py:1: arrow points up, model (1) to ops (4)"),
        ("model/a.py", "\nfrom ..ops.info import x", "model/a.py:2: arrow points up"),
        ("model/a.py", "def f():\n    import logreel.cli", "model/a.py:2: arrow points up"),
        ("model/a.py", "if TYPE_CHECKING:\n    from logreel import formats", "model/a.py:2: arrow points up"),
        ("model/a.py", "load('logreel.outputs.csv')", "model/a.py:1: arrow points up"),
        ("model/a.py", "from logreel import open", "model/a.py:1: imports the public package"),
        ("model/a.py", "import logreel", "model/a.py:1: imports the public package"),
        ("errors.py", "from logreel.model import log", "errors.py:1: errors.py is visible everywhere"),
        ("formats/bddf/a.py", "from logreel.formats.ulog import x", "bddf/a.py:1: imports the format ulog"),
        ("formats/bddf/a.py", "from ..ulog import x", "bddf/a.py:1: imports the format ulog"),
        ("formats/bddf/__init__.py", "from .. import ulog", "bddf/__init__.py:1: imports the format ulog"),
        ("formats/a.py", "from . import ulog", "formats/a.py:1: imports the format ulog"),
        ("formats/__init__.py", "from .ulog import x", "formats/__init__.py:1: imports the format ulog"),
        ("ops/a.py", "import logreel.formats.ulog.scan", "ops/a.py:1: imports the format ulog"),
        ("ops/a.py", "X = {'u': 'logreel.formats.ulog'}", "ops/a.py:1: imports the format ulog"),
        ("__init__.py", "from logreel.ops import info", "__init__.py:1: logreel/__init__.py must not load"),
        (
            "__init__.py",
            "def f():\n    import logreel.cli",
            "__init__.py:2: logreel/__init__.py must not load",
        ),
        ("misc/a.py", "", "misc/a.py:1: stands on no floor"),
        ("ops/a.py", "x = 1\n" * 801, "ops/a.py:801: longer than 800 lines"),
        ("ops/a.py", "\nprint('x')", "ops/a.py:2: print( has no place"),
        ("ops/a.py", "eval('1')", "ops/a.py:1: eval( has no place"),
        ("ops/a.py", "import builtins\nbuiltins.exec('1')", "ops/a.py:2: exec( has no place"),
        ("ops/a.py", "assert True", "ops/a.py:1: assert vanishes"),
        ("ops/a.py", "from pickle import loads", "ops/a.py:1: pickle runs code"),
        ("ops/a.py", "load(p, allow_pickle=True)", "ops/a.py:1: pickle runs code"),
    ],
)
def test_a_breach_is_found_with_its_line(tmp_path: Path, file: str, source: str, expected: str) -> None:
    (tmp_path / "logreel" / "formats" / "ulog").mkdir(parents=True)
    path = tmp_path / "logreel" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    found = findings(tmp_path / "logreel")
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("__init__.py", "from logreel.errors import LogError\ndef f():\n    from logreel.ops import info"),
        (
            "__init__.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .model.log import Log",
        ),
        ("__init__.py", "LAZY = {'slice': 'logreel.ops.slice'}\nfrom ._version import __version__"),
        ("model/a.py", "entry_points(group='logreel.formats')\nfrom logreel.kernels import frames"),
        ("formats/ulog/a.py", "from . import scan\nfrom logreel.formats.ulog.scan import x\nimport re"),
        ("cli/a.py", "import logreel\nfrom logreel.ops import info\nconsole.print('eval(1)')"),
        ("__main__.py", "from logreel.cli import main"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, file: str, source: str) -> None:
    (tmp_path / "logreel" / "formats" / "ulog").mkdir(parents=True)
    path = tmp_path / "logreel" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert findings(tmp_path / "logreel") == []
