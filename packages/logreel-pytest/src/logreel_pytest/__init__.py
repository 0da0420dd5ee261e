"""Assertions on logs in pytest: the fixture ``log``, and conditions over time whose messages show the moment.

    def test_battery(log):
        assert log["battery_status"]["voltage_v"].min() > 14

Nothing of logreel or NumPy is imported before a test uses it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logreel_pytest.conditions import always as always
    from logreel_pytest.conditions import eventually as eventually
    from logreel_pytest.conditions import never as never
    from logreel_pytest.conditions import within as within
    from logreel_pytest.run_log import RunLog as RunLog
    from logreel_pytest.signals import Reading as Reading
    from logreel_pytest.signals import Signal as Signal

_MODULES = {
    "always": "conditions", "eventually": "conditions", "never": "conditions", "within": "conditions",
    "RunLog": "run_log", "Reading": "signals", "Signal": "signals",
}  # fmt: skip
__all__ = ["Reading", "RunLog", "Signal", "always", "eventually", "never", "within"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"logreel_pytest.{_MODULES[name]}"), name)
