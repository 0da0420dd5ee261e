"""The plugin of pytest: ``--log``, the fixture ``log``, and charts in the messages of failed assertions.

It is imported by every run of pytest where it is installed, so it imports nothing but pytest.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from logreel_pytest.run_log import RunLog


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--log`` and the setting ``logreel_log``."""
    group = parser.getgroup("logreel", "logs of robots, vehicles and simulators")
    group.addoption(
        "--log",
        action="append",
        default=[],
        metavar="PATH",
        dest="logreel_log",
        help="Log for the fixture 'log': a path or a pattern; with several logs, each test runs with each of them.",
    )
    parser.addini("logreel_log", "Log for the fixture 'log', if there is no --log.", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker ``log``."""
    config.addinivalue_line("markers", "log(path): log of this test for the fixture 'log', in place of --log")


def _paths(config: pytest.Config) -> list[str]:
    """Return the logs of ``--log``, else of the setting; patterns may match several."""
    names: list[str] = config.getoption("logreel_log") or [config.getini("logreel_log")]
    return [path for name in names if name for path in (sorted(glob.glob(name)) or [name])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with each log where ``--log`` names several."""
    paths = _paths(metafunc.config)
    has_own = metafunc.definition.get_closest_marker("log") is not None
    if "log" in metafunc.fixturenames and len(paths) > 1 and not has_own:
        metafunc.parametrize("log", paths, indirect=True, ids=[os.path.basename(path) for path in paths])


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Iterator[RunLog]:
    """The log of the marker ``log``, of ``--log``, or of the setting ``logreel_log``, open.

    Without any, the test is skipped: there is nothing to assess.
    """
    marker = request.node.get_closest_marker("log")
    paths = _paths(request.config)
    if marker is not None:
        path = os.fspath(marker.args[0])
        # Beside the test, wherever pytest was started.
        path = path if os.path.isabs(path) else os.path.join(os.path.dirname(request.path), path)
    elif hasattr(request, "param"):
        path = request.param
    elif paths:
        path = paths[0]
    else:
        pytest.skip("not assessed: no log, give one with --log PATH")
    # Only a test that has a log needs more than pytest.
    from logreel_pytest.run_log import RunLog

    with RunLog(path) as opened:
        yield opened


def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Return the message of a comparison with a reading of a signal: where and when it is, with a chart."""
    from sys import modules

    # Whoever has not imported the module has no reading.
    signals = modules.get("logreel_pytest.signals")
    readings = (
        [] if signals is None else [side for side in (left, right) if isinstance(side, signals.Reading)]
    )
    if not readings:
        return None
    lines = [f"{float_text(left)} {op} {float_text(right)}"]
    for reading in readings:
        lines += reading.told()
    return lines


def float_text(value: object) -> str:
    """Return a number in few digits, and anything else as Python shows it."""
    return f"{value:g}" if isinstance(value, float) else repr(value)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, None]:
    """Add the charts of a failed test to its report for pytest-html; in the terminal they are in the message."""
    outcome = yield
    report = outcome.get_result()
    from sys import modules

    signals = modules.get("logreel_pytest.signals")
    if report.when != "call" or signals is None:
        return
    pictures = signals.take_drawn()
    if report.failed and pictures and item.config.pluginmanager.hasplugin("html"):
        report.extras = [*getattr(report, "extras", []), *map(_extra, pictures)]


def _extra(picture: str) -> dict[str, Any]:
    """Return a picture as pytest-html takes it."""
    return {
        "name": "moment", "format_type": "html", "content": picture, "mime_type": "text/html", "extension": "html",
    }  # fmt: skip
