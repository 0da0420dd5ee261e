"""Formats of other packages are found by entry point and cannot break built-in formats."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import logreel
import logreel.plugin
from logreel import known_formats
from logreel.errors import UnknownFormatError, UnsupportedError, UsageError
from logreel.formats import BEGINS
from logreel.formats.ulog import FORMAT as ULOG
from logreel.index.block_table import Blocks
from logreel.index.message_index import MessageIndex
from logreel.io.source import Chunks, Source
from logreel.limits import FixedLimit, fixed_limits
from logreel.log.scan import Saved, Scan
from logreel.registry import registry
from logreel.registry.format import Format
from support.harness.cli_runner import Run, Spawn
from support.samples.ulog.builder import tiny


def scan(source: Source, _: Saved | None) -> Scan:
    return Scan("7", "start", None, None, [], MessageIndex(Chunks(source), Blocks.empty(0), []), [])


OTHER = Format("other", "Another format", (".oth",), lambda source: source.head.startswith(b"OTHER"), scan)


class Point:
    """An entry point like those of importlib.metadata."""

    def __init__(self, load: Callable[[], Any], name: str = "other") -> None:
        self.load, self.name, self.value = load, name, "other:FORMAT"


def _fail(error: BaseException) -> Any:
    raise error


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that replaces all entry points by those with the given ``load`` functions."""

    def entry_points(*loads: Callable[[], Any]) -> None:
        registry.FORMATS.forget()
        monkeypatch.setattr(metadata, "entry_points", lambda group: [Point(load) for load in loads])

    yield entry_points
    registry.FORMATS.forget()


def test_format_of_another_package_opens(install: Install) -> None:
    install(lambda: OTHER)
    log = logreel.open(b"OTHER content")
    assert (log.format, log.version, len(log.channels), log.start) == ("other", "7", 0, None)
    assert logreel.open(tiny()).format == "ulog"
    assert list(known_formats())[-1] == "other"
    assert logreel.open(b"no such head", format="other").format == "other"


def test_limits_of_a_format_of_another_package_are_listed(install: Install) -> None:
    longest = FixedLimit("bytes of a name of another log", 64, "real ones have ten", "the name is cut")
    own = list(fixed_limits())
    install(lambda: replace(OTHER, limits=lambda: [longest]))
    assert [limit for limit in fixed_limits() if limit not in own] == [longest]
    install(lambda: OTHER)
    assert list(fixed_limits()) == own


def test_functions_of_a_format_may_be_plain_ones_and_are_never_text(install: Install) -> None:
    states = {"a": {"mode": {0: "idle"}}}
    plain = replace(OTHER, states=lambda log: states, detectors=lambda: (), api=lambda: logreel.plugin)
    install(lambda: plain)
    assert registry.states_of(logreel.open(b"OTHER content")) == states
    assert registry.detectors_of_format(plain) == ()
    assert logreel.other is logreel.plugin  # type: ignore[attr-defined]
    for field in ("states", "detectors", "api", "commands", "limits"):
        with pytest.raises(UsageError, match=rf"Format\.{field} is a function: lazy\('other:a'\)"):
            replace(OTHER, **{field: "other:a"})


SRC = Path(logreel.__file__).parent
PLACES = sorted(
    {
        place
        for path in SRC.rglob("*.py")
        if "lazy" in (text := path.read_text(encoding="utf-8"))
        for place in re.findall(r'\blazy(?:_value|_scan)?\(\s*"(logreel[\w.:]*)"', text)
    }
)


@cache
def names_in(file: Path) -> set[str]:
    """Return the names that a module defines."""
    return {
        target.id if isinstance(target, ast.Name) else str(getattr(node, "name", ""))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        for target in (getattr(node, "targets", None) or [getattr(node, "target", None)])
    }


@pytest.mark.parametrize("place", PLACES)
def test_every_lazy_place_exists(place: str) -> None:
    module, _, name = place.partition(":")
    text = SRC.parent.joinpath(*module.split("."))
    file = text.with_suffix(".py") if text.with_suffix(".py").exists() else text / "__init__.py"
    assert file.exists()
    assert not name or name in names_in(file)


def test_a_lazy_value_is_imported_when_it_is_called(spawn: Spawn) -> None:
    code = (
        "import sys; from logreel.plugin import lazy_value\n"
        "make, module = lazy_value('colorsys:ONE_THIRD'), lazy_value('colorsys')\n"
        "print('colorsys' in sys.modules, make(), module().__name__)"
    )
    assert spawn("-c", code).stdout.split() == [b"False", str(1 / 3).encode(), b"colorsys"]


def test_builtin_formats_cannot_be_replaced(install: Install) -> None:
    install(lambda: Format("ulog", "fake", (), lambda _: True, scan))
    assert known_formats()["ulog"] is ULOG
    assert logreel.open(tiny()).message_count > 0


@pytest.mark.parametrize(
    "broken",
    [
        lambda: _fail(ImportError("no such module")),
        lambda: _fail(AttributeError("no FORMAT")),
        lambda: _fail(RuntimeError("bad at import")),
        lambda: _fail(SystemExit(0)),
        lambda: _fail(GeneratorExit()),
        lambda: _fail(type("Odd", (BaseException,), {})("own kind")),
        lambda: None,
        lambda: "a string",
        lambda: Format("sniffs", "raises", (), lambda _: _fail(KeyError("sniff")), scan),
        lambda: Format("sniffs", "exits", (), lambda _: _fail(SystemExit(0)), scan),
    ],
    ids=[
        "missing",
        "no attribute",
        "raises",
        "exits",
        "ends a generator",
        "own kind",
        "None",
        "text",
        "sniff raises",
        "sniff exits",
    ],
)
def test_broken_plug_in_is_left_out_with_a_warning(install: Install, broken: Callable[[], Any]) -> None:
    install(broken, lambda: OTHER)
    assert logreel.open(tiny()).format == "ulog"
    with pytest.warns(RuntimeWarning, match="left out"):
        assert logreel.open(b"OTHER content").format == "other"


def test_unknown_content_and_unknown_names_raise() -> None:
    with pytest.raises(UnknownFormatError, match="begins with 6e 6f"):
        logreel.open(b"no log")
    with pytest.raises(UnknownFormatError, match="empty"):
        logreel.open(b"")
    with pytest.raises(UnsupportedError, match=r"there are: .*ulog"):
        logreel.open(tiny(), format="nosuch")


def test_a_plug_in_that_exits_is_named_on_stderr_and_the_verb_goes_on(
    install: Install, run: Run, tmp_path: Path
) -> None:
    install(lambda: _fail(SystemExit(0)), lambda: OTHER)
    (tmp_path / "x.other").write_bytes(b"OTHER content")
    done = run("info", tmp_path / "x.other")
    assert done.code == 0
    assert "x.other" in done.out
    assert done.err.startswith(
        "logreel: log format plug-in 'other' is left out: it cannot be loaded: SystemExit(0)"
    )


@pytest.mark.parametrize("fmt", registry.FORMATS.own().values(), ids=lambda fmt: fmt.name)
def test_the_beginning_of_a_file_points_to_its_format(fmt: Format) -> None:
    assert BEGINS.keys() == registry.FORMATS.own().keys()
    at, mark = BEGINS[fmt.name]
    source = Source(fmt.sample() if fmt.sample is not None else tiny(), "x")
    fits = [name for name, (at, mark) in BEGINS.items() if source.head.startswith(mark, at)]
    assert (fits == [fmt.name]) is fmt.sniff(source)
    # No other format takes a file that begins so.
    begun = Source(bytes(at) + mark + b" V2.0\n" * (fmt.name == "rosbag") + bytes(64), "x")
    assert [f.name for f in registry.FORMATS.own().values() if f.sniff(begun)] in ([fmt.name], [])


def test_only_the_format_of_a_file_is_imported(tmp_path: Path, spawn: Spawn) -> None:
    (tmp_path / "a.ulg").write_bytes(tiny())
    script = tmp_path / "opens.py"
    script.write_text(
        "import sys, logreel\n"
        "logreel.open(sys.argv[1])\n"
        "names = {name.split('.')[2] for name in sys.modules if name.startswith('logreel.formats.')}\n"
        "sys.exit(', '.join(sorted(names - {'ulog'})) or 0)\n"
    )
    done = spawn(script, str(tmp_path / "a.ulg"))
    assert done.returncode == 0, done.stderr.decode()


def test_entry_points_are_seen_without_asking_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logreel.registry import entry_points_seen

    for name, text in (
        ("a-1.dist-info", "[console_scripts]\na = a:main\n[logreel.formats]\nthermo = a:FORMAT\n"),
        ("b.egg-info", "[ logreel.commands ]\n# a comment\ncarla.x=b:X\n"),
        ("c.egg/EGG-INFO", "[logreel.formats]\nother = c:FORMAT [extra]\n"),
        ("d-1.dist-info", "[other.logreel]\nx = y:z\n"),
        ("e-1.dist-info", None),
    ):
        (tmp_path / name).mkdir(parents=True)
        if text is not None:
            (tmp_path / name / "entry_points.txt").write_text(text)
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "none")])
    # It is loaded by pytest.
    assert entry_points_seen() is None
    for name in [name for name in sys.modules if name.startswith("importlib.metadata")]:
        monkeypatch.delitem(sys.modules, name)
    # So do finders of pytest.
    monkeypatch.setattr("sys.meta_path", [])
    assert entry_points_seen() == {"logreel.formats": {"thermo", "other"}, "logreel.commands": {"carla.x"}}
    (tmp_path / "none").write_text("an archive")
    assert entry_points_seen() is None
