"""The files of the page: small modules, all served, no markup from logs, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from pathlib import Path

import pytest

import logreel.outputs.view as view
from logreel.outputs.view.app import JoinedModules, known_files

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


ADDRESSES = {f"/static/{path.relative_to(STATIC).as_posix()}": path for path in MODULES}
_NAMES = re.compile(r"""^import \{ (.*) \} from ["'](.*)["'];$""", re.M)


def test_all_modules_are_in_the_script_of_the_page_and_three_js_is_not() -> None:
    script = known_files()["/page.js"]().decode()
    for address in ADDRESSES:
        assert f"__modules[{json.dumps(address)}] = async" in script
    assert not re.search(r"^(import|export)\b", script, re.M)
    # A file of its own, which only the module of the scene loads.
    assert script.count('await import("/vendor/three/three.module.min.js")') > 0
    assert "WebGLRenderer {" not in script
    assert len(script) < 470_000


def test_each_name_that_a_module_imports_is_one_that_the_other_returns() -> None:
    script = JoinedModules(ADDRESSES).script
    parts = re.split(r"^__modules\[(.*)\] = async \(\) => \{$", script, flags=re.M)
    returned = {
        json.loads(address): set(re.findall(r"\w+", re.findall(r"^return \{(.*)\};$", body, re.M)[-1]))
        for address, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    for address, path in ADDRESSES.items():
        for names, other in _NAMES.findall(path.read_text()):
            target = "/static" + str(Path("/", Path(address).relative_to("/static").parent, other).resolve())
            assert {name.split(" as ")[0].strip() for name in names.split(",")} <= returned[target], address


def test_the_map_of_the_script_leads_each_line_to_its_module() -> None:
    joined = JoinedModules(ADDRESSES)
    sources = json.loads(joined.sources)
    texts = [ADDRESSES[address].read_text().splitlines() for address in sources["sources"]]
    lines, steps = joined.script.splitlines(), [_numbers(line) for line in sources["mappings"].split(";")]
    places = [*accumulate((step[1:3] for step in steps if step), lambda a, b: [a[0] + b[0], a[1] + b[1]])]
    assert len(places) == sum(map(len, texts))
    mapped = [line for line, step in zip(lines, steps, strict=False) if step]
    for line, (module, number) in zip(mapped, places, strict=True):
        original = texts[module][number].removeprefix("export ")
        assert line == original or "import" in original


def _numbers(text: str) -> list[int]:
    """Return the numbers of one segment of a map of sources."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    numbers, shift, value = [], 0, 0
    for digit in map(alphabet.index, text):
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            shift = value = 0
    return numbers


@pytest.mark.parametrize(
    "line", ["export default 1;", 'import x from "./y.js";', "export { a };", "import {"]
)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.js").write_text(f"{line}\n")
    with pytest.raises(ValueError, match="cannot be joined"):
        JoinedModules({"/static/a.js": tmp_path / "a.js"})
