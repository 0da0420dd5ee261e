"""The page by keyboard alone, and what screen readers are given."""

from __future__ import annotations

import pytest


def test_a_field_is_plotted_zoomed_and_closed_without_a_pointer(view) -> None:
    found = view("ulog")
    page = found.page
    before = page.locator("#plots .frame").count()
    found.press("/")
    page.keyboard.type("battery voltage")
    page.wait_for_selector("#tree .rows[data-for='battery voltage']")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "treeitem"
    page.keyboard.press("Shift+Enter")
    page.wait_for_function(f"() => document.querySelectorAll('#plots .frame').length === {before + 1}")
    found.settle()
    found.press("+", "+")
    low, high = found.window
    assert high - low < 5e9
    found.press("]")
    assert found.window[0] > low
    found.press("0")
    assert found.window == (float("-inf"), float("inf"))
    # In the tree, arrows move in the tree.
    found.press("Alt+ArrowDown")
    # Steps go from message to message of the chosen channel.
    found.press("ArrowRight")
    first = found.cursor
    found.press("ArrowRight")
    second = found.cursor
    found.press("Shift+ArrowRight")
    assert first < second < found.cursor
    assert abs(found.cursor - second - 1) < 1e-6
    found.press("c", "Shift+ArrowRight")
    assert "Δ" in page.inner_text("#play .delta")
    found.press("Alt+ArrowDown", "x")
    assert page.locator("#plots .frame").count() == before
    page.keyboard.press("Control+k")
    page.keyboard.type("zzz")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("?")
    assert page.locator("dialog[open]").get_attribute("aria-label") == "Keys"
    found.shot("keys")
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


@pytest.fixture(scope="module")
def flight(lasting_view):
    """A page for tests that leave its plots as they are."""
    return lasting_view("ulog")


def test_tab_reaches_all_regions_with_a_visible_focus(flight) -> None:
    page = flight.page
    page.evaluate(
        """() => { window.focused = new Map();
            addEventListener("focusin", ({ target }) => {
                const region = target.closest("#head, #tree, #plots, #bottom, #upper, #lower, #play, #timeline");
                const { outlineStyle, outlineWidth } = getComputedStyle(target);
                focused.set(target, [region?.id ?? target.className, outlineStyle, outlineWidth]); }); }"""
    )
    before, reached = -1, 0
    while reached > before:
        for _ in range(20):
            page.keyboard.press("Tab")
        before, reached = reached, page.evaluate("focused.size")
    places = page.evaluate("[...focused.values()]")
    assert [place for place in places if place[1] == "none" or place[2] == "0px"] == []
    seen = {place[0] for place in places}
    assert {"head", "tree", "plots", "bottom", "lower", "play", "timeline"} <= seen


def test_tree_tabs_and_timeline_have_roles_and_names(flight) -> None:
    page = flight.page
    tree = page.get_by_role("tree", name="Channels and fields")
    assert tree.get_by_role("treeitem").count() > 3
    item = page.locator("#tree [role=treeitem][aria-expanded=false]").first
    item.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#tree [role=treeitem][aria-expanded=true]")
    assert page.locator("#tree [role=treeitem][aria-level='2']").count() > 0
    page.get_by_role("tab", name="Message").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Parameters").get_attribute("aria-selected") == "true"
    slider = page.get_by_role("slider")
    assert "cursor" in slider.get_attribute("aria-valuetext")
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, input, select, textarea, [role=slider]")]
            .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
