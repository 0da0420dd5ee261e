"""The page in a browser: the tree, themes, narrow windows, hostile names."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from browser.samples import sample
from support.samples.ulog.builder import Builder


def test_the_tree_shows_units_counts_and_pins_fields(view) -> None:
    found = view("bddf")
    page = found.page
    page.fill("#tree input", "patrol height")
    page.wait_for_selector("#tree .rows[data-for='patrol height']")
    row = page.locator("#tree [role=treeitem]", has_text="height.value").first
    assert row.locator(".aside").inner_text() == "m"
    row.click()
    page.wait_for_selector("#panel-message[data-topic='patrol/body/height']")
    row.locator(".pin").click()
    page.fill("#tree input", "")
    page.wait_for_function("() => document.querySelector('#tree .item.head')?.textContent === 'Pinned'")
    page.wait_for_function("() => location.hash.includes('pinned')")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert page.locator("#tree .item.head").first.inner_text() == "Pinned"


def test_the_page_is_ready_with_its_channels_and_says_nothing_of_them_before(view) -> None:
    found = view("bddf")
    page = found.page
    # All that the tree says in place of channels, while the answer about them is late.
    script = """window.heads = [];
        addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
            for (const head of document.querySelectorAll("#tree .item.head")) window.heads.push(head.textContent);
        }).observe(document.getElementById("tree"), { childList: true, subtree: true }));"""

    def late(route: Any) -> None:
        page.wait_for_function("() => window.heads.length > 0")
        route.continue_()

    page.route("**/api/logs/*/channels*", late)
    with page.add_init_script(script):
        page.reload()
        page.wait_for_selector("html[data-ready=yes]")
    assert page.locator("#tree [role=treeitem]").count() > 1
    heads = page.evaluate("window.heads")
    assert heads[0] == "Reading the channels …"
    assert "This log has no channels." not in heads


def test_a_field_is_dragged_from_the_tree_into_a_plot(view) -> None:
    found = view("ulog")
    page = found.page
    page.fill("#tree input", "battery_status.voltage_v")
    page.wait_for_selector("#tree .rows[data-for='battery_status.voltage_v']")
    frame = page.locator("#plots .frame").first
    before = frame.locator(".legend li").count()
    page.locator("#tree [role=treeitem]", has_text="voltage_v").first.drag_to(frame.locator(".body"))
    page.wait_for_function(
        f"() => document.querySelector('#plots .frame .legend').children.length === {before + 1}"
    )
    found.settle()


@pytest.fixture(scope="module")
def narrow(lasting_view):
    """A page in a narrow window."""
    return lasting_view("ulog", size=(1024, 700))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_overlaps_in_a_narrow_window(narrow, dark: bool) -> None:
    page = narrow.page
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.wait_for_selector(f"html[data-theme={'dark' if dark else 'light'}]")
    narrow.settle()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    boxes = {
        name: page.locator(name).bounding_box()
        for name in ("#head", "#tree", "#centre", "#side", "#foot", "#plots", "#bottom")
    }
    for box in boxes.values():
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 1024 + 0.5
        assert box["y"] + box["height"] <= 700 + 0.5
    assert boxes["#tree"]["x"] + boxes["#tree"]["width"] <= boxes["#centre"]["x"]
    assert boxes["#centre"]["x"] + boxes["#centre"]["width"] <= boxes["#side"]["x"]
    assert boxes["#plots"]["width"] > 300
    narrow.shot(f"narrow-{'dark' if dark else 'light'}")


def test_the_theme_changes_the_colours_and_is_kept(view) -> None:
    found = view("ulog")
    page = found.page
    colour = "getComputedStyle(document.getElementById('plots')).backgroundColor"
    light = page.evaluate(colour)
    found.press("t")
    assert page.evaluate(colour) != light
    found.shot("dark")
    page.wait_for_function("() => location.hash.includes('theme')")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_names_and_texts_of_a_log_are_never_markup(view, tmp_path: Path) -> None:
    bad = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
    out = Builder(start_us=1_000_000).flags()
    out.info("sys_name", bad).info("ver_sw", bad)
    out.format("odd:uint64_t timestamp;float value;")
    out.parameter("<b>GAIN</b>", 0.5)
    out.subscribe("odd", 0)
    for step in range(200):
        out.data(0, struct.pack("<Qf", 1_000_000 + 1000 * step, step % 7))
        if step % 50 == 0:
            out.text(3, 1_000_000 + 1000 * step, bad)
    path = tmp_path / "<img src=x onerror=window.hacked=3>.ulg"
    path.write_bytes(out.bytes())
    found = view(path)
    page = found.page
    for kind in ("parameters", "problems", "message"):
        page.click(f"#tab-{kind}")
        page.wait_for_selector(f"#panel-{kind}[data-ready]")
    page.wait_for_selector("#panel-text[data-ready] li")
    page.hover("#timeline canvas")
    found.press("n")
    assert bad in page.inner_text("#panel-text .lines")
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("script").count() == 2
    assert page.evaluate("window.hacked") is None


def test_a_wrong_token_is_said_in_the_page(view, tmp_path: Path) -> None:
    found = view(sample("ulog", tmp_path), keep=False)
    found.page.evaluate("sessionStorage.clear()")
    found.page.goto("about:blank")
    found.page.goto(f"{found.viewer.url}#token=wrong-token-wrong-token")
    found.page.wait_for_selector("html[data-ready=error]")
    assert "right token" in found.page.inner_text("[role=alert]")


def test_the_token_leaves_the_address(view) -> None:
    found = view("ulog")
    found.page.wait_for_function("() => !location.hash.includes('token')")
    assert found.viewer.token not in found.page.url
    assert not [one for one in found.requests if found.viewer.token in one.partition("#")[0]]


def test_an_absurd_address_opens_the_page_all_the_same(view) -> None:
    absurd = {
        "panels": [{"kind": "plot", "series": [{"topic": "no such", "field": "x"}]}],
        "window": [1e30, -1e30],
        "cursor": "soon",
        "theme": "javascript:alert(1)",
        "pinned": 7,
        "sizes": {"constructor": 3, "tree": 1e9},
        "offsets": {"0": None},
        "clock": "noon",
        "tabs": [],
    }
    found = view("ulog", state=urlencode({name: json.dumps(one) for name, one in absurd.items()}))
    assert found.page.locator("#plots .frame .sentence.bad").inner_text() != ""
    assert found.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert found.page.locator("#tree [role=treeitem]").count() > 3
