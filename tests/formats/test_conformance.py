"""Every format of the package passes what formats of others have to pass."""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path

import pytest

from logreel.registry.format import Format
from logreel.testing import FormatSuite
from support.builders.contents import SAMPLES
from support.formats import builtin_formats, small_log
from support.harness.examples import half
from support.samples.carla.builder import eventful
from support.samples.ulog.builder import flight

#: Logs shorter than the sample of the format; damage in depth is tried by tests/damage.
SHORT = {
    "carla": cache(lambda: eventful().bytes()),
    "rosbag": SAMPLES[".bag"],
    "ulog": cache(lambda: flight(2.0)),
}
#: Channels that slices by topic keep, too.
ALWAYS = {"carla": ["frames"]}
#: Channels whose last message is completed when others follow: the duration of a frame.
COMPLETED = {"carla": ["frames"]}
TESTS = sorted(name for name in vars(FormatSuite) if name.startswith("test_"))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("fmt", builtin_formats().values(), ids=lambda fmt: fmt.name)
def test_format_passes_the_suite_for_formats(fmt: Format, test: str) -> None:
    class Suite(FormatSuite):
        format = fmt
        samples = [SHORT.get(fmt.name) or partial(small_log, fmt.name)]  # noqa: RUF012
        cuts, mutations = 10, half(10)
        always = ALWAYS.get(fmt.name, ())
        completed = COMPLETED.get(fmt.name, ())
        sequences = half(5)

    getattr(Suite(), test)()


def test_the_suite_iterates_over_the_formats_of_logreel_alone() -> None:
    """A plug-in that a developer has installed has tests of its own: ``builtin_formats`` leaves it out."""
    every = re.compile(r"(?<![\w.])(?:known_)?formats\(\)(?:\.values\(\)|\.items\(\)| if |\]|\))")
    users = {
        path.name
        for path in Path(__file__).parents[1].rglob("*.py")
        if re.search(r"for .* in .*" + every.pattern, path.read_text(encoding="utf-8"))
    }
    assert users == set()
