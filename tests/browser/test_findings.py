"""What happened, on the first screen: findings are one click from their interval, and bands have names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser.test_true_pictures import red
from support.builders.crash import ARMED, FAILSAFE, FALL, LOW, SAID, SECONDS, crash

NS = 1e9
#: Texts and times of the faults in the list.
FAULTS = """(list) => [...list.querySelectorAll("ol[aria-label=Faults] li")].map((one) => [
    one.className, one.querySelector(".what").textContent, one.querySelector(".time").textContent])"""


def test_a_crash_is_told_without_a_click_and_shown_with_one(view: Any, tmp_path: Path) -> None:
    path = tmp_path / "crash.ulg"
    path.write_bytes(crash())
    found = view(path)
    page = found.page
    page.wait_for_selector("#panel-findings[data-ready]")
    panel = page.locator("#panel-findings")
    assert panel.evaluate(FAULTS) == [
        ["error", SAID, "40.0 s"],
        ["error", "battery_status: 3.10 V a cell", "30.0 … 39.9 s"],
        ["error", "failsafe", "32.0 … 40.0 s"],
        ["warn", "Roll is not controlled", "40.1 s"],
    ]
    assert page.inner_text("#facts button") == "3 errors, 1 warning"
    page.wait_for_selector("#timeline canvas[data-ready=yes]")

    # Bands: each kind in a lane with its name, failsafe red, and behind the plots.
    strip = page.locator("#timeline canvas")
    box = strip.bounding_box()
    inside, lane = box["width"] * (FAILSAFE + 1) / SECONDS, box["height"] - 53
    assert red(strip, round(inside), round(lane), 20, 12) > 0
    page.mouse.move(box["x"] + box["width"] * 35 / SECONDS, box["y"] + 40)
    tip = page.inner_text("#timeline .tip")
    assert [word in tip for word in ("mode Return", "Armed", "In the air", "Failsafe")] == [True] * 4
    page.mouse.move(300, 300)

    # One click: the interval with what came before it, its curve, and the list marks it.
    panel.locator(".finding", has_text="V a cell").click()
    page.wait_for_selector("#panel-findings li[aria-current=true]")
    page.wait_for_selector("#plots .frame .legend li:has-text('voltage')")
    found.settle()
    low, high = found.window
    assert (low, high) == (pytest.approx((LOW - 5) * NS, abs=NS), pytest.approx((FALL + 2) * NS, abs=NS))
    assert found.cursor == pytest.approx(LOW, abs=0.2)
    assert "V a cell" in page.evaluate("document.activeElement.textContent")
    found.shot("finding")

    # The plot of a finding is one: that of the next takes its place.
    count = page.locator("#plots .frame").count()
    panel.locator(".finding", has_text="failsafe").first.click()
    page.wait_for_function(
        "() => document.querySelector('#plots .frame h2').textContent === 'Finding: failsafe'"
    )
    panel.locator(".finding", has_text=SAID).click()
    found.settle()
    assert page.locator("#plots .frame", has_text="Finding: failsafe").count() == 0
    assert page.locator("#plots .frame").count() <= count + 1

    # By time, and events, with what was not assessed at the end.
    page.click("#panel-findings .tool button")
    assert next(row[1] for row in panel.evaluate(FAULTS)).startswith("battery_status")
    assert panel.locator("ol[aria-label=Events] .what").first.inner_text() == "Armed begins"
    assert panel.locator("ol[aria-label=Events] .time").first.inner_text() == f"{ARMED:.1f} s"
    assert panel.locator("details > summary").last.inner_text().startswith("Not assessed")
    assert panel.locator(".summary h4").first.inner_text() == "Recording"
    # Who chooses a field sees its message; the head leads back.
    page.locator("#tree [role=treeitem]").first.click()
    page.wait_for_selector("#panel-message:not([hidden])")
    page.click("#facts button")
    page.wait_for_selector("#panel-findings li")
    assert sum("/findings" in address for address in found.requests) == 1


def test_a_log_without_a_fault_says_what_was_looked_at(view: Any, tmp_path: Path) -> None:
    path = tmp_path / "sound.ulg"
    path.write_bytes(crash(sound=True))
    found = view(path, size=(1280, 800), dark=True)
    found.page.wait_for_selector("#panel-findings[data-ready]")
    text = found.page.inner_text("#panel-findings")
    assert "no fault found" in text
    assert "detectors, the checks of times, the reader and the text of the log" in text
    found.shot("no-findings")


#: Real logs that no rule of the findings was made for, the answer to "what happened?", and when, in s after the start.
ANSWERS = {
    "ulog/ekf_failure.ulg": ("Attitude failure detected", 68.1),
    "ulog/quadrotor_local.ulg": ("Low battery", 77.0),
    "ulog/battery_brownout.ulg": ("no battery is measured in the air", 4.4),
    "ulog/corrupt_actuator_armed_wrong_size.ulg": ("711032 bytes of zeros", 22.2),
    "rosbag/v20_dmg_tail_cut.bag": ("the last 1247 bytes are a cut record", 8.34),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_happened_is_told_without_a_click_and_shown_with_one(view: Any, shared: Path, name: str) -> None:
    what, when = ANSWERS[name]
    opened = view(shared / "data" / name)
    page = opened.page
    page.wait_for_selector("#panel-findings[data-ready]")
    opened.settle()
    finding = page.locator("ol[aria-label=Faults] .finding", has_text=what).first
    # Without a click, and without scrolling: what, and when.
    box = finding.bounding_box()
    assert box["y"] + box["height"] < page.viewport_size["height"]
    assert float(finding.locator(".time").inner_text().split()[0]) == pytest.approx(when, abs=0.05)
    # With one: the moment with some time before it, and curves.
    finding.click()
    page.wait_for_selector("#panel-findings li[aria-current=true]")
    opened.settle()
    low, high = opened.window
    assert low < when * NS < high + 0.05 * NS
    assert low <= max(0.0, when - 1) * NS
    assert opened.cursor == pytest.approx(when, abs=0.2)
    assert page.locator("#plots .frame .legend li").count() > 0
    opened.shot(f"answer-{Path(name).stem}")
