"""``logreel.plugin`` suffices for a format: the one in docs/howto/write-a-format.md is built from the page alone."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import logreel.plugin
from support.harness.cli_runner import Spawn

PAGE = Path(__file__).resolve().parents[1] / "docs" / "howto" / "write-a-format.md"


def block(language: str, begins: str) -> str:
    """Return the code block of the page that begins with this text."""
    found = re.search(
        rf"```{language}\n({re.escape(begins)}.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found is not None, begins
    return found[1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder with the package of the page, as installed by pip, and its tests."""
    (tmp_path / "thermo.py").write_text(block("python", '"""Thermometer'))
    (tmp_path / "test_thermo.py").write_text(block("python", "import numpy as np\nimport thermo\n"))
    project = tomllib.loads(block("toml", "[project]"))["project"]
    info = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata)
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_format_of_the_page_passes_the_suite_outside_of_logreel(installed: Path, spawn: Spawn) -> None:
    # Plug-ins of the environment that pytest would load.
    without = [word for name in ("cacheprovider", "zarr", "anyio") for word in ("-p", f"no:{name}")]
    done = spawn("-m", "pytest", "-q", "-rs", *without, "test_thermo.py", cwd=installed)
    out = done.stdout.decode()
    assert done.returncode == 0, out
    reasons = re.findall(r"SKIPPED \[1\] \S+ (.*)", out)
    assert len(reasons) == 1, out
    assert reasons[0].startswith("no types of its own")
    assert re.search(r"15 passed, 1 skipped", out), out


def test_the_format_of_the_page_imports_nothing_but_the_plugin_module(installed: Path) -> None:
    found = set()
    for name in ("thermo.py", "test_thermo.py"):
        for node in ast.walk(ast.parse((installed / name).read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
    assert found == {"numpy", "thermo", "logreel.plugin", "logreel.testing"}


@pytest.mark.parametrize("name", logreel.plugin.__all__)
def test_each_name_is_what_its_module_defines(name: str) -> None:
    found = getattr(logreel.plugin, name)
    assert getattr(found, "__name__", name) == name
    assert getattr(found, "__module__", "logreel.").startswith("logreel.")
    assert name in dir(logreel.plugin)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"logreel\.plugin.*Nothing"):
        _ = logreel.plugin.Nothing  # type: ignore[attr-defined]


def test_importing_the_plugin_module_loads_only_errors(spawn: Spawn) -> None:
    code = (
        "import sys, logreel.plugin\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('logreel', 'numpy.', 'pyarrow'))))"
    )
    assert spawn("-c", code).stdout.split() == [
        b"logreel",
        b"logreel._version",
        b"logreel.dataclass",
        b"logreel.errors",
        b"logreel.plugin",
    ]


def test_the_errors_are_an_attribute_of_the_package_and_load_nothing_else(spawn: Spawn) -> None:
    code = "import sys, logreel; logreel.errors.LogError; print(*(m for m in sys.modules if m.startswith('logreel.')))"
    assert spawn("-c", code).stdout.split() == [b"logreel._version", b"logreel.dataclass", b"logreel.errors"]


def test_reading_names_need_no_arrow_and_no_hypothesis(spawn: Spawn) -> None:
    code = (
        "import sys\n"
        "from logreel.plugin import Blocks, ChannelInfo, FieldAt, Format, FormatWriter, Layout, MessageIndex, Scan\n"
        "print(*{'pyarrow', 'hypothesis', 'logreel.testing'} & set(sys.modules))"
    )
    assert spawn("-c", code).stdout.split() == []


@pytest.mark.parametrize("face", [logreel, logreel.plugin], ids=["logreel", "plugin"])
def test_type_checkers_read_the_names_that_the_module_loads(face: ModuleType) -> None:
    stub = ast.parse(Path(str(face.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    shown, inner = dict[str, tuple[str | None, str]](), dict[str, tuple[str | None, str]]()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module != "typing":
            for alias in node.names:
                (shown if alias.asname else inner)[alias.asname or alias.name] = (node.module, alias.name)
        elif isinstance(node, ast.Assign):
            shown[ast.unparse(node.targets[0])] = inner[ast.unparse(node.value)]
    assert sorted(shown) == sorted(face.__all__)
    for name, (module, attribute) in shown.items():
        owner = importlib.import_module(str(module))
        if not hasattr(owner, attribute):
            owner = importlib.import_module(f"{module}.{attribute}")
            assert getattr(face, name) is owner
        else:
            assert getattr(face, name) is getattr(owner, attribute), name
