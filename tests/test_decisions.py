"""The pages about decisions: their parts, their length, their index, and the commits that they name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
PARTS = ["Context", "Decision", "Alternatives", "Consequences", "What would change it"]
HASH = re.compile(r"`([0-9a-f]{8})`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_five_parts_and_is_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == PARTS
    assert text.startswith("# ")
    assert text.count("\n") <= 60


def test_the_index_lists_every_page_once() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[.*?\]\((.*?)\)", index, re.MULTILINE)) == [page.name for page in PAGES]
    assert len(PAGES) >= 20


def test_the_pages_are_found_from_the_other_ones() -> None:
    for path, link in (
        ("docs/architecture.md", "(decisions/README.md)"),
        ("CONTRIBUTING.md", "(docs/decisions/README.md)"),
    ):
        assert link in (ROOT / path).read_text(encoding="utf-8"), path


def test_the_commits_that_are_named_exist() -> None:
    named = sorted({name for page in PAGES for name in HASH.findall(page.read_text(encoding="utf-8"))})
    assert len(named) > 50
    git = ["git", "-C", str(ROOT)]
    try:
        is_shallow = subprocess.run(
            [*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the history is not here")
    if is_shallow != "false":
        pytest.skip("a part of the history is not here")
    answers = subprocess.run(
        [*git, "cat-file", "--batch-check"],
        input="\n".join(named),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert [line for line in answers if " commit " not in line] == []
