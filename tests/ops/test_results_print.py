"""Results print as tables, and notebooks show them as HTML; names of internals stay out of completion."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.contents import SAMPLES

RESULTS = {
    "Summary": logreel.summary,
    "Health": logreel.health,
    "Info": logreel.info,
    "Check": logreel.check,
}


class Balanced(HTMLParser):
    """Collects the tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
@pytest.mark.parametrize("name", sorted(RESULTS))
def test_results_print_and_show_html(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a<b>{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    found = RESULTS[name](path)
    text, html = str(found), found._repr_html_()
    assert text != repr(found)
    assert text.splitlines()[0].startswith(str(path))
    assert "a&lt;b&gt;" in html
    assert "a<b>" not in html
    page = Balanced()
    page.feed(html)
    assert page.open == []
    assert len(repr(found)) < 1000


def test_what_a_summary_prints_are_its_facts() -> None:
    found = logreel.summary(SAMPLES[".ulg"]())
    text = str(found)
    for section in found:
        assert section.title in text
        for fact in section:
            assert " ".join(fact.text.split())[:40] in text


def test_text_of_a_log_cannot_control_a_terminal() -> None:
    problem = logreel.Problem("x", 0, 1, False, "red \x1b[31m\nand more")
    shown = str(logreel.info(SAMPLES[".bag"]()).__class__(*_with_problem(problem)))
    assert "\x1b" not in shown
    assert "red \ufffd[31m and more" in shown


def _with_problem(problem: logreel.Problem) -> list[Any]:
    found = logreel.info(SAMPLES[".bag"]())
    names = type(found).__dataclass_fields__
    return [(problem,) if name == "problems" else getattr(found, name) for name in names]


def test_dir_of_a_log_lists_what_people_use() -> None:
    with logreel.open(SAMPLES[".bag"]()) as log:
        names = dir(log)
    assert {"channels", "messages", "start", "text", "table", "items", "__len__"} <= set(names)
    assert not [
        one for one in names if one.startswith("_") and not one.startswith(("__", "_repr_html_", "_ipy"))
    ]
    assert "gather" not in names
