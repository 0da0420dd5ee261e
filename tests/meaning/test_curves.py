"""Curves: which ones have steps, and functions of a field against what is known of them."""

from __future__ import annotations

import io

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from logreel.meaning.columns import MemoryColumn, ValueStatistics, Window
from logreel.meaning.curves import function_named, is_stepped

STEPS = {
    # A command that is another one each time is a line, one that is repeated a step; so are modes and booleans.
    "cmd_vel.turning": False,
    "cmd_vel.repeated": True,
    "cmd_vel.mode": True,
    "cmd_vel.flag": True,
    "cmd_vel.still": False,
    "velocity_setpoint.turning": True,
    "manual_control_setpoint.turning": False,
    # Steps would hide the gaps of values that come in bursts.
    "bursts.repeated": False,
}


def test_steps_are_what_changes_rarely() -> None:
    fields = "uint64_t timestamp;float turning;float repeated;uint8_t mode;bool flag;float still;"
    names = ("cmd_vel", "velocity_setpoint", "manual_control_setpoint", "bursts")
    with logreel.create(buffer := io.BytesIO(), format="ulog") as writer:
        channels = [writer.add_channel(n, logreel.Schema(n, "ulog", f"{n}:{fields}")) for n in names]
        for n in range(2000):
            burst = n * 10**7 + (n // 40) * 10**9
            for channel, time in zip(channels, (*[n * 10**7] * 3, burst), strict=True):
                values = {
                    "turning": np.sin(n),
                    "repeated": n // 50,
                    "mode": n // 700,
                    "flag": n % 2,
                    "still": 1.5,
                }
                writer.write(channel, time, values)
    with logreel.open(buffer.getvalue()) as log:
        got = {name: is_stepped(log[topic], field) for name in STEPS for topic, field in [name.split(".")]}
        assert got == STEPS
        assert is_stepped(log["cmd_vel"], "mode", "negative")
        assert not is_stepped(log["cmd_vel"], "mode", "derivative")
        assert not is_stepped(log["cmd_vel"], "mode", "low_pass 2")


def test_functions_of_a_field() -> None:
    t = np.arange(4000) * 0.005 + np.random.default_rng(1).uniform(0, 0.001, 4000)
    slow, fast = np.sin(t), 0.3 * np.sin(2 * np.pi * 20 * t)
    missing = np.where(np.arange(len(t)) % 97 == 5, np.nan, slow + fast)

    def applied(text: str, values: np.ndarray) -> np.ndarray:
        return function_named(text).apply(t, values[:, None])

    inside = (t > 1) & (t < 19) & np.isfinite(missing)
    np.testing.assert_allclose(applied("low_pass 3", missing)[inside], slow[inside], atol=0.04)
    np.testing.assert_allclose(applied("high_pass 3", missing)[inside], fast[inside], atol=0.04)
    assert np.isnan(applied("low_pass 3", missing)).sum() == np.isnan(missing).sum()
    for at in (0, 1234, len(t) - 1):
        expected = np.nanmean(missing[np.abs(t - t[at]) <= 0.25])
        assert applied("moving_mean 0.5", missing)[at] == pytest.approx(expected, abs=1e-12)
    known = np.isfinite(missing)
    assert applied("integral", missing)[-1] == pytest.approx(np.trapezoid(missing[known], t[known]))
    assert [function_named("integral").unit(unit) for unit in ("m/s", "m/s²", "V", "")] == [
        "m",
        "m/s",
        "V·s",
        "",
    ]
    for wrong in ("low_pass x", "low_pass -1", "norm 3", "nothing"):
        with pytest.raises(UsageError):
            function_named(wrong)


def test_statistics_leave_out_what_is_no_number() -> None:
    column = MemoryColumn(np.arange(5), np.array([9.0, 3.0, np.nan, -4.0, np.inf]), "")
    got = Window(column, 1, 5).statistics()
    assert got == ValueStatistics(2, 2, -4.0, -0.5, 3.0, np.sqrt(12.5))
    assert Window(column, 2, 3).statistics() == ValueStatistics(0, 1)
