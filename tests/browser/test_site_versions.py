"""The list of versions of the documentation site, opened as files."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"1.0": ("index", "howto/convert"), "0.9": ("index", "howto/convert", "old"), "0.8": ("index",)}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder of three versions, whose pages have the list of versions."""
    template = (ROOT / "tools/sphinx/templates/sidebar/versions.html").read_text("utf-8")
    for version, pages in PAGES.items():
        for page in pages:
            path = tmp_path / version / f"{page}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            top = "/".join([".."] * (page.count("/") + 1))
            text = template.replace("{{ pathto('../versions.js', 1) }}", f"{top}/versions.js")
            text = text.replace("{{ pathto('..', 1) }}", top).replace("{{ version }}", version)
            path.write_text(f"<!doctype html>{text}<script src='{top}/{version}/versions.js'></script>")
        shutil.copy(ROOT / "tools/sphinx/static/versions.js", tmp_path / version)
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "tools/build_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.list_versions(tmp_path, "1.0")
    return tmp_path


@pytest.mark.parametrize(
    ("begin", "choice", "end"),
    [
        ("1.0/howto/convert", "0.9", "0.9/howto/convert"),
        ("1.0/howto/convert", "0.8", "0.8/index"),
        ("0.9/old", "1.0", "1.0/index"),
        ("0.8/index", "1.0", "1.0/index"),
    ],
)
def test_the_list_of_versions_leads_to_the_same_page(
    browser: Any, site: Path, begin: str, choice: str, end: str
) -> None:
    page = browser.new_page()
    page.goto(f"{(site / begin).as_uri()}.html#part")
    assert page.locator("#versions").input_value() == begin.partition("/")[0]
    assert page.locator("#versions option").all_inner_texts() == ["1.0", "0.9", "0.8"]
    page.select_option("#versions", choice)
    page.wait_for_url(f"{(site / end).as_uri()}.html")
    page.close()
