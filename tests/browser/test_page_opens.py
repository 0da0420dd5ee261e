"""The page in a browser: what is seen when a log opens."""

from __future__ import annotations

from pathlib import Path

from logreel.formats.ulog.sample.builder import flight


def test_the_first_screen_has_plots_a_tree_and_a_timeline(view, tmp_path: Path) -> None:
    file = tmp_path / "flight.ulg"
    file.write_bytes(flight(10))
    page = view(file).page
    assert page.locator("#plots .frame canvas").count() >= 1
    assert page.locator("#tree [role=treeitem]").count() > 3
    assert "flight.ulg" in page.inner_text("#facts")
    page.wait_for_selector("#timeline canvas[data-ready=yes]")


def test_a_wrong_token_is_said_in_the_page(view, tmp_path: Path) -> None:
    file = tmp_path / "flight.ulg"
    file.write_bytes(flight(2))
    found = view(file, keep=False)
    found.page.evaluate("sessionStorage.clear()")
    found.page.goto("about:blank")
    found.page.goto(f"{found.viewer.url}#token=wrong-token-wrong-token")
    found.page.wait_for_selector("html[data-ready=error]")
    assert "right token" in found.page.inner_text("[role=alert]")
