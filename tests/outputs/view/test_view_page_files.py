"""The files of the page: small modules, all served, no markup from logs, nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import logreel.outputs.view as view
from logreel.outputs.view.app import known_files

STATIC = Path(view.__file__).parent / "static"
MODULES = sorted(STATIC.rglob("*.js"))
_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*["']([./][^"'\n]+)["']""")


def test_there_are_modules() -> None:
    assert len(MODULES) > 20


@pytest.mark.parametrize("path", MODULES, ids=[path.relative_to(STATIC).as_posix() for path in MODULES])
def test_a_module_is_readable_and_safe(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400, "a module holds one concept"
    for word in (
        r"\beval\(",
        r"innerHTML",
        r"outerHTML",
        r"insertAdjacentHTML",
        r"document\.write",
        r"new Function",
    ):
        assert not re.search(word, text), f"{word} could run what a log contains"
    assert not re.search(r"""["'`](https?:)?//[a-z]""", text), "the page asks nobody else"


@pytest.mark.parametrize("path", MODULES, ids=[path.relative_to(STATIC).as_posix() for path in MODULES])
def test_what_a_module_imports_is_served(path: Path) -> None:
    here = f"/static/{path.relative_to(STATIC).as_posix()}"
    for name in _IMPORT.findall(path.read_text()):
        base = Path(here).parent / name if name.startswith(".") else Path(name)
        parts: list[str] = []
        for part in base.as_posix().split("/"):
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        assert "/".join(parts) in known_files(), name


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)
    for name in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert name in known_files(), name
