"""The site has every page, verb and public name, and asks nothing of other hosts; ``make site`` builds it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import click
import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def module(path: str) -> ModuleType:
    """Return a module of tools/."""
    spec = spec_from_file_location(Path(path).stem, ROOT / "tools" / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


site = module("build_site.py")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages as Sphinx reads them."""
    folder: Path = tmp_path_factory.mktemp("site") / "pages"
    site.write_pages(folder)
    return folder


def test_the_contents_have_every_page_once() -> None:
    order = site.contents()
    entries = [
        entry.page for part in (order.parts, order.below) for inner in part.values() for entry in inner
    ]
    due = {site.staged(path).with_suffix("").as_posix() for path in DOCS.rglob("*.md")} - {"index"}
    assert {page for page in entries if not page.startswith("project/")} == due | {"coming-from/index"}
    assert len(entries) == len(set(entries))
    assert next(iter(order.parts)) == "Tutorial"


def test_every_public_name_has_a_docstring_of_its_own_and_a_page(pages: Path) -> None:
    lacking, files = [], []
    for names in site.public_names().values():
        for name, owner in names.items():
            thing = getattr(site.MODULES[owner], name)
            own = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
            if not own:
                lacking.append(f"{owner}.{name}")
            files.append(site.page_of_name(name, owner))
    assert lacking == []
    assert len({name.lower() for name in files}) == len(files) > 150
    assert all((pages / f"reference/{name}.md").is_file() for name in files)


def test_every_verb_has_a_page_with_all_its_options(pages: Path) -> None:
    count = 0
    for command, context in site.commands():
        name = site.verb_name(context.command_path.removeprefix("logreel "))
        text = (pages / f"verbs/{name}.md").read_text("utf-8")
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                count += 1
                for option in parameter.opts:
                    assert re.search(rf"^`[^`]*{re.escape(option)}\b", text, re.MULTILINE), parameter
        for line, _ in getattr(command, "examples", ()):
            assert f"\n{line}\n" in text
    assert count > 300


def test_links_between_the_pages_of_the_site_lead_somewhere(pages: Path) -> None:
    count = 0
    for path in pages.rglob("*.md"):
        text = re.sub(r"^ *```.*?^ *```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert not re.search("^<!-- setup", text, re.MULTILINE)
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", re.sub(r"`[^`\n]*`", "", text)):
            if not re.match("[a-z]+:", target):
                count += 1
                start = pages if target.startswith("/") else path.parent
                assert (start / target.lstrip("/")).is_file(), f"{path.relative_to(pages)}: {target}"
    assert count > 1000


def test_every_row_of_a_table_belongs_to_one(pages: Path) -> None:
    for path in pages.rglob("*.md"):
        lines = re.sub(
            r"^ *```.*?^ *```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
        ).splitlines()
        for number, line in enumerate(lines):
            if line[:1] == "|" and (number == 0 or lines[number - 1][:1] != "|"):
                assert lines[number + 1][:2] in {"|-", "| "}, f"{path.name}: {line}"
                assert not lines[number + 1].strip("|-: "), f"{path.name}: {line}"


def test_what_comes_from_other_hosts_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://a.example/">a</a><img src="local.png"><p style="color: red">'
    )
    (tmp_path / "a.css").write_text(
        "/* url(https://a.example/) */ p { background: url('data:image/png;base64,') }"
    )
    assert site.requests_elsewhere(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<script src="//b.example/x.js"></script><link rel="stylesheet" href="http://b.example/">'
    )
    (tmp_path / "b.css").write_text(
        "@import 'https://b.example/c.css'; @font-face { src: url(https://b.example/f.woff2) }"
    )
    (tmp_path / "b.js").write_text('fetch("https://b.example/")')
    told = [line.partition(":")[0] for line in site.requests_elsewhere(tmp_path)]
    assert told == ["b.css", "b.css", "b.html", "b.html", "b.js"]


def test_versions_stay_beside_each_other(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.10.0.dev3", "0.10.0.1", "dev"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "0.9.0/howto").mkdir()
    (tmp_path / "0.9.0/howto/convert.html").touch()
    site.list_versions(tmp_path, "0.10.0")
    begin, _, versions = (tmp_path / "versions.js").read_text().partition(" = ")
    assert begin == "window.LOGREEL_VERSIONS"
    pages = json.loads(versions.removesuffix(";\n"))
    assert [*pages] == ["0.10.0.1", "0.10.0", "0.10.0.dev3", "0.9.0", "dev"]
    assert pages["0.9.0"] == ["howto/convert.html", "index.html"]
    assert pages["dev"] == ["index.html"]
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()


def test_aligned_lists_of_docstrings_become_definitions() -> None:
    lists = module("sphinx/conf.py").lists
    assert lists(["Do.", "", "a, b   first", "       more", "other  second", "", "End."]) == [
        "Do.", "", "", "``a``, ``b``", "    first", "    more", "", "``other``", "    second", "", "End.",
    ]  # fmt: skip
    assert lists(["Two words, and a sentence."]) == ["Two words, and a sentence."]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if any(find_spec(name) is None for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton")):
        pytest.skip(
            "the packages of the extra site are not installed: make site installs them, and builds the site"
        )
    done = subprocess.run(
        [sys.executable, ROOT / "tools/build_site.py", "--out", tmp_path, "--name", "9.9"],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first = (tmp_path / "9.9/index.html").read_text("utf-8")
    # The colours of a command are elements of their own.
    assert "logreel convert flight.ulg" in re.sub("<[^>]*>", "", first)
    assert "_images/viewer.png" in first
    index = (tmp_path / "9.9/searchindex.js").read_text("utf-8")
    assert "reference/Channel" in index
    assert "verbs/slice" in index
    assert "to_arrow" in (tmp_path / "9.9/reference/Channel.html").read_text("utf-8")
