"""Colours of curves are told apart by all eyes in both themes; names, targets and narrow screens are usable."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
import logreel.outputs.view as viewer
from browser.test_panels import panels

#: What eyes without one kind of cones see, of linear RGB (Machado, Oliveira, Fernandes 2009, severity 1).
EYES = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
#: Least distance of two colours (CIE 1976, where 2.3 is just seen), and least contrast of a line with its ground.
DISTANCE, CONTRAST = 19.0, 3.0


def linear(colour: str) -> np.ndarray:
    """Return the linear RGB of ``#rrggbb``."""
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return CIELAB of linear RGB."""
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_of_curves_are_told_apart_by_all_eyes(theme: str) -> None:
    style = (Path(viewer.__file__).parent / "static" / "style.css").read_text()
    block = style.split(":root")[1 if theme == "light" else 2]
    colours = {int(n): linear(colour) for n, colour in re.findall(r"--series-(\d): (#[0-9a-f]{6})", block)}
    assert len(colours) == 8
    for eyes, seen in EYES.items():
        for a, b in combinations(colours, 2):
            far = np.linalg.norm(lab(seen @ colours[a]) - lab(seen @ colours[b]))
            assert far >= DISTANCE, f"{a} and {b} are {far:.1f} apart with {eyes}"
    ground = TO_XYZ[1] @ linear(re.search(r"--panel: (#[0-9a-f]{6})", block)[1])
    for n, colour in colours.items():
        light, dark = sorted((TO_XYZ[1] @ colour, ground), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= CONTRAST, n


TOPICS = [f"/robot/arm_with_a_long_name/joint_{n}" for n in range(8)] + [
    f"/other/thing_{n}" for n in range(8)
]
SMALL = """() => [...document.querySelectorAll("button, input, select, [role=tab], [role=treeitem], .lines li")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.type !== "checkbox")
    .map((one) => [one.getBoundingClientRect(), one.getAttribute("aria-label") || one.textContent])
    .filter(([{ width, height }]) => Math.min(width, height) < 23.99)
    .map(([{ width, height }, name]) => `${name} ${width} ${height}`)"""
#: Handles and controls whose pixels that can be hit, in the middle or elsewhere along them, are less than 24 × 24.
HARD_TO_HIT = """() => [...document.querySelectorAll(".split, .grip, .yaxis, button, input, select, summary")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.type !== "checkbox").flatMap((one) => {
        one.scrollIntoView({ block: "center" });
        const { left, top, width, height } = one.getBoundingClientRect(), wide = width > height;
        const hit = (x, y) => one.contains(document.elementFromPoint(x, y));
        const reach = (x, y, dx, dy) => { let n = 0; while (n < 30 && hit(x + n * dx, y + n * dy)) n++; return n; };
        const sizes = [0.5, 0.2, 0.8, 0.05, 0.95].map((part) => {
            const x = left + (wide ? part : 0.5) * width, y = top + (wide ? 0.5 : part) * height;
            return Math.min(reach(x, y, 1, 0) + reach(x, y, -1, 0), reach(x, y, 0, 1) + reach(x, y, 0, -1));
        });
        const name = one.getAttribute("aria-label") || one.textContent.slice(0, 30) || one.className;
        return Math.max(...sizes) >= 23 ? [] : [`${name}: ${Math.max(...sizes)}`];
    })"""
UNNAMED = """() => [...document.querySelectorAll("button, input, select, [tabindex], canvas")]
    .filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"))
    .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim() || one.title))
    .map((one) => one.outerHTML.slice(0, 120))"""


def test_names_fold_and_show_what_they_differ_by(view: Any, tmp_path: Path) -> None:
    path = tmp_path / "names.mcap"
    schema = logreel.Schema("demo/msg/Value", "ros2msg", "float64 altitude\nfloat64 altitude_rate\n")
    with logreel.create(path) as writer:
        channels = [writer.add_channel(topic, schema) for topic in TOPICS]
        for n in range(20):
            for channel in channels:
                writer.write(channel, n * 10**8, {"altitude": float(n), "altitude_rate": 1.0})
    found = view(path)
    page = found.page
    rows = page.locator("#tree [role=treeitem]")
    page.wait_for_selector("#tree[data-ready]")
    folders = page.locator("#tree .folder")
    assert folders.locator(".label").all_text_contents() == ["/robot/arm_with_a_long_name", "/other"]
    assert rows.count() == 2 + len(TOPICS)
    # A slash at the begin is no part of its own, which would stand apart.
    assert (
        page.locator("#tree .label .first").evaluate_all(
            "(all) => all.filter((one) => one.textContent === '/').length"
        )
        == 0
    )
    folders.first.focus()
    found.press("ArrowLeft")
    assert rows.count() == 2 + 8
    assert folders.first.get_attribute("aria-expanded") == "false"
    found.press("ArrowRight")
    # Each result shows its field, whatever is cut.
    page.fill("#tree input", "altitude_rate")
    page.wait_for_function("() => document.querySelector('#tree .rows').dataset.for === 'altitude_rate'")
    cut = page.locator("#tree .label .last").evaluate_all(
        "(all) => all.map((one) => [one.textContent, one.scrollWidth - one.clientWidth])"
    )
    assert len(cut) >= len(TOPICS)
    # And by what the topics differ.
    ends = [topic[-7:] if len(topic) > 14 else topic for topic in TOPICS]
    assert {text for text, _ in cut} == {f"{end}.altitude_rate" for end in ends}
    assert all(more <= 0 for _, more in cut)
    found.shot("names-found")


def test_targets_are_large_and_named_and_a_phone_is_enough(view: Any) -> None:
    battery = {"kind": "plot", "series": [{"topic": "battery_status", "field": "voltage_v"}]}
    found = view("ulog", state=panels(battery, {"kind": "map", "at": "right"}, battery))
    page = found.page
    page.wait_for_selector("#tree[data-ready]")
    assert page.evaluate(SMALL) == []
    assert page.locator(".split").evaluate_all("(all) => all.length") == 5
    assert page.evaluate(HARD_TO_HIT) == []
    assert page.evaluate(UNNAMED) == []
    found.shot("names-wide")
    page.set_viewport_size({"width": 414, "height": 896})
    found.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 414
    page.wait_for_function("() => document.querySelector('#plots .uplot').clientWidth <= 414")
    for region in ("#tree", "#plots", "#upper", "#lower", "#timeline"):
        box = page.locator(region).bounding_box()
        assert box["width"] >= 360, region
        assert box["height"] >= 40, region
    assert page.evaluate(HARD_TO_HIT) == []
    page.evaluate("scrollTo(0, 0)")
    found.shot("phone")
    page.evaluate("scrollTo(0, 900)")
    found.shot("phone-below")
