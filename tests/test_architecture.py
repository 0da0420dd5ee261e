"""Rules of the source: imports point down, formats do not import each other, no circles."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from support.formats import builtin_formats

SRC = Path(__file__).resolve().parents[1] / "src" / "logreel"
FLOORS = {
    "kernels": 0,
    "io": 1,
    "layout": 2,
    "index": 3,
    "log": 4,
    "registry": 5,
    "lenses": 5,
    "schemas": 5,
    "meaning": 6,
    "write": 6,
    "formats": 7,
    "ops": 7,
    "outputs": 8,
    "fleet": 8,
    "testing": 8,
    "plugin": 9,
    "cli": 9,
    "__main__": 9,
}
#: Modules that only hand names on to authors of other packages: nothing inside imports them.
FACES = {"plugin"}
EVERYWHERE = {"dataclass", "errors", "limits", "_version"}
#: What ``logreel/__init__.py`` may load at first touch, besides what is visible everywhere.
PUBLIC = {"layout", "index", "log", "registry", "meaning", "write", "ops", "outputs", "fleet"}
MAX_LINES = 800
#: Public modules that a Format names as its ``api``; users get them as ``logreel.NAME``, so they hand names on.
APIS = {"formats.carla.simulator.api"}
#: Other modules that hand on names of others by ``__all__``, and whose. A module that stops leaves this list.
HANDED_ON: set[tuple[str, str]] = set()
#: A string that is a lazy import by table or import_module; some are groups of entry points.
MODULE_NAME = re.compile(
    r"(?!logreel\.(?:formats|commands|sinks|sources|detectors|lenses|languages|outputs)$)logreel(\.\w+)+"
)
BANNED_CALLS = {"print", "eval", "exec"}
#: Most parameters of a function of the library; a file of fewer lines can be a chapter of the one that imports it; a
#: function of this length is looked at.
MAX_PARAMETERS, CHAPTER_LINES, LONG_FUNCTION = 11, 300, 60
#: Modules with the engine that writes logs from logs, and the class there that others inherit from: what is done to
#: messages on the way is a transform, no class of the engine.
ENGINES, TRANSFORM = {"ops.rewrite.rewrite", "ops.rewrite.engine"}, "Transform"
#: A place named by a string, which no type checker follows.
PLACE_NAME = re.compile(r'"logreel(?:\.\w+)+:\w+"')
#: Names that do not say what they hold.
VAGUE = {
    "found", "one", "kind", "some", "whole", "many", "there", "mine", "piece", "pieces", "held", "given", "thing",
    "things",
}  # fmt: skip
#: Figures of the house that must not grow, and shrink with every room that is rebuilt; see ``figures``.
CEILINGS = {
    "chapters": 15,
    "functions with many parameters": 0,
    "long functions": 16,
    "errors below cli that word a flag": 0,
    "objects changed behind their back": 0,
    "private members of other objects": 9,
    "class names with several ideas": 15,
    "names that say nothing": 289,
    "places named by a string": 117,
    "subclasses of the engine": 0,
    "folders whose __init__ says nothing": 0,
}
#: Most lines and files of the source, and least median of the lines of a file: a file holds a whole concept.
MOST_CODE_LINES, MOST_FILES, LEAST_MEDIAN = 154_800, 468, 285


class Import(NamedTuple):
    """One module name that a file depends on; *lazy* if it is not loaded together with the file; *text*: in a table."""

    line: int
    target: str
    lazy: bool
    text: bool = False


def module_of(path: Path, root: Path) -> tuple[str, ...]:
    """Return the dotted name of a file as a tuple without the leading ``logreel``: () for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


BASES = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
#: Nodes without a place in the source, such as ``ast.Load``, which are a third of all, and values that are no nodes.
PLACELESS = {
    *(each for base in BASES for each in base.__subclasses__()),
    *map(type, (0, 0.0, 0j, "", b"", True, None, ...)),
}  # fmt: skip
FUNCTIONS = {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda}


def walked(tree: ast.AST) -> list[tuple[ast.AST, bool]]:
    """Return the nodes of a tree but PLACELESS ones, each with whether it is not run when the module is loaded."""
    nodes = [(tree, False)]
    # The list grows while it is read.
    for node, lazy in nodes:
        lazy = lazy or type(node) in FUNCTIONS or is_type_checking(node)
        for value in vars(node).values():
            if type(value) is list:
                nodes += [(item, lazy) for item in value if type(item) not in PLACELESS]
            elif type(value) not in PLACELESS:
                nodes.append((value, lazy))
    return nodes


def imports(nodes: Iterable[tuple[ast.AST, bool]], package: tuple[str, ...]) -> Iterator[Import]:
    """Yield every logreel module that nodes from ``walked`` name, in import statements or as a string."""
    for node, lazy in nodes:
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            if node.level:
                base = ["logreel", *package[: len(package) - node.level + 1], *base]
            # The imported name may itself be a module, as in `from logreel import ops`: judge all of it.
            yield from (Import(node.lineno, ".".join([*base, alias.name]), lazy) for alias in node.names)
        elif isinstance(node, ast.Constant):
            text = node.value if isinstance(node.value, str) else ""
            if MODULE_NAME.fullmatch(text):
                yield Import(node.lineno, text, True, True)


@dataclass(frozen=True)
class File:
    """One source file, parsed once.

    module  dotted name as a tuple without the leading ``logreel``
    face    True for the ``__init__`` of a package
    """

    path: Path
    module: tuple[str, ...]
    face: bool
    text: str

    @property
    def name(self) -> str:
        """Dotted name."""
        return ".".join(self.module)

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax tree."""
        return ast.parse(self.text, filename=str(self.path))

    @cached_property
    def _walked(self) -> list[tuple[ast.AST, bool]]:
        return walked(self.tree)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree that have a place in the source."""
        return [node for node, _ in self._walked]

    @cached_property
    def imports(self) -> list[Import]:
        """What ``imports`` yields; a stub loads nothing."""
        items = imports(self._walked, self.module if self.face else self.module[:-1])
        return [item._replace(lazy=item.lazy or self.path.suffix == ".pyi") for item in items]


@cache
def files(root: Path) -> tuple[File, ...]:
    """Return all Python files below *root*."""
    return tuple(
        File(path, module_of(path, root), path.stem == "__init__", path.read_text(encoding="utf-8"))
        for path in sorted([*root.rglob("*.py"), *root.rglob("*.pyi")])
    )


def modules(root: Path) -> list[File]:
    """Return the modules below *root*, without their stubs."""
    return [file for file in files(root) if file.path.suffix == ".py"]


def wrong_import(module: tuple[str, ...], item: Import, root: Path) -> str | None:
    """Return why a file must not import this, or None."""
    first, *rest = item.target.split(".")
    if first != "logreel":
        return None
    there = rest[0] if rest else ""
    if there in EVERYWHERE:
        return None
    here = module[0] if module else ""
    if here in EVERYWHERE:
        return f"{here}.py is visible everywhere, so it must not import {item.target}"
    if there in FACES:
        return f"imports the face for other packages: {item.target}"
    owner = (
        rest[1] if there == "formats" and len(rest) > 1 and (root / "formats" / rest[1]).is_dir() else None
    )
    if owner and module[:2] != ("formats", owner):
        return f"imports the format {owner}: only its own folder may, others go through the registry"
    if here == "":
        if there in FLOORS and not (there in PUBLIC and item.lazy):
            return f"logreel/__init__.py must not load {item.target} on import"
        return None
    if here in FACES and there in ("cli", "__main__"):
        return f"imports the command line: {item.target}"
    if there not in FLOORS:
        # A name of the package itself, such as logreel.open, may stand for any floor below the command line.
        return None if here in ("cli", "__main__") else f"imports the public package: {item.target}"
    if FLOORS[there] > FLOORS[here]:
        return f"arrow points up, {here} ({FLOORS[here]}) to {there} ({FLOORS[there]}): {item.target}"
    return None


def wrong_words(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and reason of all constructs that a library reading untrusted bytes must not use."""
    for node in nodes:
        if isinstance(node, ast.Assert):
            yield node.lineno, "assert vanishes under -O: raise, or record a Problem"
        elif isinstance(node, ast.Call):
            name = dotted(node.func).removeprefix("builtins.")
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


def graph(root: Path) -> dict[str, set[str]]:
    """Return the modules that each module imports, lazily or not; ``__init__`` modules are left out."""
    known = {file.name: file for file in modules(root) if not file.face}

    def module(target: str) -> str | None:
        parts = target.split(".")[1:]
        names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
        return next((name for name in names if name in known), None)

    return {
        name: {
            target
            for item in file.imports
            # Modules named only in a table are not dependencies.
            if not item.text and (target := module(item.target)) is not None and target != name
        }
        for name, file in known.items()
    }


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return sets of modules each of which reaches all others of its set (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack, found = list[str](), set[frozenset[str]]()

    def visit(one: str) -> None:
        order[one] = low[one] = len(order)
        stack.append(one)
        for other in edges[one]:
            if other not in order:
                visit(other)
            if other in stack:
                low[one] = min(low[one], low[other])
        if low[one] == order[one]:
            at = stack.index(one)
            if len(stack) > at + 1:
                found.add(frozenset(stack[at:]))
            del stack[at:]

    for one in edges:
        if one not in order:
            visit(one)
    return found


def exported_names_of_others(root: Path) -> set[tuple[str, str]]:
    """Return each module that names in ``__all__`` what it imports, and from where; without the known API modules."""
    exported = set()
    for file in modules(root):
        if file.face or file.name in FACES | APIS:
            continue
        owners = {
            alias.asname or alias.name: node.module.removeprefix("logreel.")
            for node in file.nodes
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("logreel.")
            for alias in node.names
        }
        exported |= {(file.name, owners[name]) for name in public(file.tree) if name in owners}
    return exported


def public(tree: ast.Module) -> list[str]:
    """Return the names in ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def private(root: Path) -> list[str]:
    """Return imports of private names and of private modules of other packages, and private names in ``__all__``."""
    breaches = []
    for file in modules(root):
        module = file.module
        breaches += [
            f"{file.name}: __all__ names {name}, which is private"
            for name in public(file.tree)
            if is_private(name)
        ]
        for item in file.imports:
            parts = item.target.split(".")
            if parts[0] != "logreel" or len(parts) < 2 or parts[1] in EVERYWHERE:
                continue
            hidden = [n for n, part in enumerate(parts) if is_private(part)]
            if hidden and (
                hidden[0] == len(parts) - 1 or tuple(parts[1 : hidden[0]]) != module[: hidden[0] - 1]
            ):
                breaches.append(f"{file.name}:{item.line}: {item.target} is private")
    return breaches


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def findings(root: Path) -> list[str]:
    """Return all violations below *root*, each as ``file:line: reason``."""
    breaches = []
    for path in sorted(root.rglob("*.pxd")):
        breaches += too_long(path.relative_to(root.parent).as_posix(), path.read_text(encoding="utf-8"))
    for file in files(root):
        name, module = file.path.relative_to(root.parent).as_posix(), file.module
        breaches += too_long(name, file.text)
        if module and module[0] not in FLOORS and module[0] not in EVERYWHERE:
            breaches.append(f"{name}:1: stands on no floor; known: {', '.join(FLOORS)}")
            continue
        lines = [(i.line, why) for i in file.imports if (why := wrong_import(module, i, root))]
        lines += wrong_words(file.nodes)
        breaches += [f"{name}:{line}: {why}" for line, why in sorted(set(lines))]
    return breaches


def too_long(name: str, text: str) -> list[str]:
    """Return a sentence for a file with more than MAX_LINES lines."""
    lines = len(text.splitlines())
    return [f"{name}:{lines}: longer than {MAX_LINES} lines: does it hold two concepts?"] * (
        lines > MAX_LINES
    )


def figures(root: Path) -> dict[str, list[str]]:
    """Return, for each name of ``CEILINGS``, the places that count.

    chapters  modules below CHAPTER_LINES lines with one importer, in their own folder: they belong into it
    """
    places: dict[str, list[str]] = {name: [] for name in CEILINGS} | {"chapters": chapters(root)}
    classes: dict[str, list[str]] = {}
    for file in modules(root):
        floor = file.module[0] if file.module else ""
        for node in file.nodes:
            for figure, text in node_figures(node, floor):
                places[figure].append(f"{file.name}:{text}")
            if isinstance(node, ast.ClassDef) and not is_private(node.name):
                classes.setdefault(node.name, []).append(file.name)
        places["places named by a string"] += [
            f"{file.name}: {match[0]}" for match in PLACE_NAME.finditer(file.text)
        ]
        places["subclasses of the engine"] += [f"{file.name}:{name}" for name in engines_of(file)]
        if file.face and not ast.get_docstring(file.tree):
            places["folders whose __init__ says nothing"].append(file.name)
    places["class names with several ideas"] = [
        f"{name}: {', '.join(owners)}" for name, owners in classes.items() if len(owners) > 1
    ]
    return places


def chapters(root: Path) -> list[str]:
    """Return the modules of the figure, each with its only importer; the ``__init__`` of a folder counts, too."""
    sources = modules(root)
    known = {file.name: file for file in sources}
    importers: dict[str, set[str]] = {}
    for file in sources:
        for item in file.imports:
            target = file.name if item.text else longest(item.target, known)
            if target not in (None, file.name):
                importers.setdefault(target, set()).add(file.name)
    return [
        f"{name} <- {importer}"
        for name, (importer, *others) in importers.items()
        if not others
        and not known[name].face
        and known[name].module[0] != "kernels"
        and known[name].text.count("\n") < CHAPTER_LINES
        and folder(name) == (importer if known[importer].face else folder(importer))
    ]


def longest(target: str, known: Mapping[str, File]) -> str | None:
    """Return the module that *target* is or is in; None for the package itself, and for other packages."""
    parts = target.split(".")
    names = (".".join(parts[1:n]) for n in range(len(parts), 1, -1))
    return next((name for name in names if name in known), None)


def engines_of(file: File) -> list[str]:
    """Return the classes that inherit from a class of ENGINES, except from TRANSFORM."""
    bases = {
        alias.asname or alias.name
        for node in file.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").removeprefix("logreel.") in ENGINES
        for alias in node.names
    }
    if file.name in ENGINES:
        bases |= {node.name for node in file.tree.body if isinstance(node, ast.ClassDef)}
    bases.discard(TRANSFORM)
    return [
        node.name
        for node in file.nodes
        if isinstance(node, ast.ClassDef) and any(dotted(base) in bases for base in node.bases)
    ]


def node_figures(node: ast.AST, floor: str) -> Iterator[tuple[str, str]]:
    """Yield the figures that a node of a module of *floor* counts for, each with its line and text."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if floor not in ("cli", "kernels") and len(arguments) > MAX_PARAMETERS:
            yield "functions with many parameters", f"{node.lineno} {node.name}"
        if floor != "kernels" and (node.end_lineno or 0) - node.lineno >= LONG_FUNCTION:
            yield "long functions", f"{node.lineno} {node.name}"
        yield from (("names that say nothing", f"{node.lineno} {a.arg}") for a in arguments if a.arg in VAGUE)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
        yield "names that say nothing", f"{node.lineno} {node.id}"
    elif isinstance(node, ast.Attribute) and is_of_another(node):
        yield "private members of other objects", f"{node.lineno} {ast.unparse(node)[:70]}"
    elif isinstance(node, ast.Call):
        if floor != "cli" and any(keyword.arg == "cli" for keyword in node.keywords):
            yield "errors below cli that word a flag", str(node.lineno)
        if dotted(node.func) == "vars" or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "__new__"
        ):
            yield "objects changed behind their back", f"{node.lineno} {ast.unparse(node.func)}"
    elif isinstance(node, ast.Subscript) and dotted(node.value).endswith("sys.modules"):
        yield "objects changed behind their back", f"{node.lineno} sys.modules"


def is_of_another(node: ast.Attribute) -> bool:
    """Return whether a member is private, and not of an object that the code belongs to, nor of a named tuple."""
    if not is_private(node.attr) or node.attr in ("_exit", "_replace", "_fields", "_asdict"):
        return False
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return False
    return not ast.unparse(node).startswith(("super().", "type(self).", "other."))


def dotted(node: ast.AST) -> str:
    """Return a name with its attributes, as in ``os.path.join``; empty for anything else. Much faster than unparse."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(names)])


def folder(name: str) -> str:
    """Return the package of a module."""
    return name.rpartition(".")[0]


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """Keep the garbage collector away from two million objects, for four fifths of the time; then forget them."""
    gc.disable()
    yield
    files.cache_clear()
    gc.enable()


def test_source_follows_the_rules() -> None:
    found = findings(SRC)
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("figure", CEILINGS)
def test_the_figures_of_the_house_do_not_grow(figure: str) -> None:
    places = figures_of_source()[figure]
    assert len(places) <= CEILINGS[figure], f"{figure}: {len(places)}\n" + "\n".join(sorted(places))


@cache
def figures_of_source() -> Mapping[str, list[str]]:
    return figures(SRC)


def test_the_source_does_not_grow_and_is_not_cut_into_small_files() -> None:
    lines = [file.text.count("\n") for file in modules(SRC)]
    assert sum(lines) <= MOST_CODE_LINES
    assert len(lines) <= MOST_FILES
    assert median(lines) >= LEAST_MEDIAN


def test_modules_do_not_import_each_other_in_circles() -> None:
    found = [" ".join(sorted(one)) for one in circles(graph(SRC))]
    assert not found, f"modules that import each other in a circle: {found}"


def test_only_known_modules_export_names_of_others() -> None:
    found = exported_names_of_others(SRC)
    assert not found - HANDED_ON, "import names from where they are defined"
    assert not HANDED_ON - found, "hands on nothing any more, take it off the list"


def test_modules_that_may_export_names_of_others_are_apis_of_formats() -> None:
    assert {f"logreel.{name}" for name in APIS} <= {
        one.api().__name__ for one in builtin_formats().values() if one.api
    }


def test_modules_do_not_import_private_names_of_others() -> None:
    found = private(SRC)
    assert not found, "\n" + "\n".join(found)


def test_the_paths_on_the_architecture_page_exist() -> None:
    text = (SRC.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"(?<![\w/.])((?:\w+/)+\w*(?:\.py)?)(?![\w>])", text))
    known = {path for path in paths if path.split("/")[0] in FLOORS}
    assert len(known) > 20
    missing = {path for path in known if not (SRC / path).exists()}
    assert not missing


def tree_of(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "logreel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "logreel"


def test_a_circle_is_found_however_it_is_imported(tmp_path: Path) -> None:
    files = {
        "log/a.py": "from logreel.log.b import x",
        "log/b.py": "def f():\n    from logreel.log import c",
        "log/c.py": "if TYPE_CHECKING:\n    from .a import A",
        "log/d.py": "from logreel.log.a import x\nfrom logreel.log import package",
        "log/e.py": "import logreel.log.f",
        "log/f.py": "from . import e",
        "log/table.py": "X = {'h': 'logreel.log.h'}",
        "log/h.py": "import logreel.log.table",
        # The face of a package names its modules, which may name the package.
        "log/package/__init__.py": "from logreel.log.package.g import x",
        "log/package/g.py": "from logreel.log.package import y",
    }
    found = circles(graph(tree_of(tmp_path, files)))
    assert found == {frozenset({"log.a", "log.b", "log.c"}), frozenset({"log.e", "log.f"})}


def test_exported_names_of_others_are_found(tmp_path: Path) -> None:
    files = {
        "log/__init__.py": "from logreel.log.b import y\n__all__ = ['y']",
        "log/a.py": "from logreel.log.b import y\nfrom re import match\n__all__ = ['x', 'y', 'match']\nx = 1",
        "log/b.py": "__all__ = ['y']\ny = 1",
    }
    assert exported_names_of_others(tree_of(tmp_path, files)) == {("log.a", "log.b")}


def test_what_is_private_is_found(tmp_path: Path) -> None:
    files = {
        "log/a.py": "from logreel.log.b import _x\nfrom logreel._version import __version__",
        "log/b.py": "__all__ = ['_x']\n_x = __doc__",
        "ops/c.py": "from logreel.log._d import x",
        "log/e.py": "from logreel.log._d import x",
        "log/_d.py": "x = 1",
    }
    assert private(tree_of(tmp_path, files)) == [
        "log.a:1: logreel.log.b._x is private",
        "log.b: __all__ names _x, which is private",
        "ops.c:1: logreel.log._d.x is private",
    ]


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("log/a.py", "from logreel.ops import info", "log/a.py:1: arrow points up, log (4) to ops (7)"),
        ("log/a.py", "\nfrom ..ops.info import x", "log/a.py:2: arrow points up"),
        ("log/a.py", "def f():\n    import logreel.cli", "log/a.py:2: arrow points up"),
        ("log/a.py", "if TYPE_CHECKING:\n    from logreel import formats", "log/a.py:2: arrow points up"),
        ("log/a.py", "load('logreel.outputs.tables.csv')", "log/a.py:1: arrow points up"),
        ("log/a.py", "from logreel import open", "log/a.py:1: imports the public package"),
        ("log/a.py", "import logreel", "log/a.py:1: imports the public package"),
        ("errors.py", "from logreel.log import log", "errors.py:1: errors.py is visible everywhere"),
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
        ("cli/a.py", "from logreel.plugin import Format", "cli/a.py:1: imports the face for other packages"),
        (
            "ops/a.py",
            "def f():\n    import logreel.plugin",
            "ops/a.py:2: imports the face for other packages",
        ),
        ("testing/a.py", "from .. import plugin", "testing/a.py:1: imports the face for other packages"),
        ("plugin.py", "from logreel.cli import main", "plugin.py:1: imports the command line"),
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
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .log.log import Log",
        ),
        ("__init__.py", "LAZY = {'slice': 'logreel.ops.slice'}\nfrom ._version import __version__"),
        ("log/a.py", "entry_points(group='logreel.formats')\nfrom logreel.kernels import frames"),
        ("formats/ulog/a.py", "from . import scan\nfrom logreel.formats.ulog.scan import x\nimport re"),
        ("cli/a.py", "import logreel\nfrom logreel.ops import info\nconsole.print('eval(1)')"),
        ("__main__.py", "from logreel.cli import main"),
        ("plugin.py", "X = {'A': 'logreel.testing.suite'}\nfrom logreel.log.log import Log"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, file: str, source: str) -> None:
    (tmp_path / "logreel" / "formats" / "ulog").mkdir(parents=True)
    path = tmp_path / "logreel" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert findings(tmp_path / "logreel") == []


def test_figures_are_counted_with_their_places(tmp_path: Path) -> None:
    many = ", ".join(f"a{n}" for n in range(12))
    sources = {
        "log/__init__.py": "",
        "log/a.py": "from logreel.log.b import x\nclass Place: pass",
        "log/b.py": "x = 1",
        "log/c.py": f"from ops.d import y\ndef wide({many}): ...\nclass Place: pass\nclass _Place: pass",
        "ops/__init__.py": '"""Says something."""',
        "ops/d.py": "from logreel.log.a import x\nraise E('x', cli='use --y')\nfound = log._scan\nself._mine = 1",
        "ops/e.py": "from logreel.log.a import x\nvars(log).clear()\nsys.modules['m'] = 1\nLog.__new__(Log)",
        "ops/rewrite/rewrite.py": "class Rewriting: pass\nclass Copying(Rewriting): pass\nclass Transform: pass",
        "ops/rewrite/g.py": "from logreel.ops.rewrite.rewrite import Rewriting\nclass Editing(Rewriting): pass",
        "ops/rewrite/i.py": "from logreel.ops.rewrite.rewrite import Transform\nclass Edits(Transform): pass",
        "ops/h.py": "TABLE = {'a': \"logreel.log.a:x\"}\ndef long():\n" + "    x = 1\n" * 60,
        "cli/f.py": "raise E('x', cli='use --y')",
    }
    counted = figures(tree_of(tmp_path, sources))
    assert {name: sorted(places) for name, places in counted.items()} == {
        "chapters": ["log.b <- log.a"],
        "functions with many parameters": ["log.c:2 wide"],
        "long functions": ["ops.h:2 long"],
        "errors below cli that word a flag": ["ops.d:2"],
        "objects changed behind their back": ["ops.e:2 vars", "ops.e:3 sys.modules", "ops.e:4 Log.__new__"],
        "private members of other objects": ["ops.d:3 log._scan"],
        "class names with several ideas": ["Place: log.a, log.c"],
        "names that say nothing": ["ops.d:3 found"],
        "places named by a string": ['ops.h: "logreel.log.a:x"'],
        "subclasses of the engine": ["ops.rewrite.g:Editing", "ops.rewrite.rewrite:Copying"],
        "folders whose __init__ says nothing": ["log"],
    }
