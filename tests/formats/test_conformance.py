"""Every format of the package passes what formats of others have to pass."""

from __future__ import annotations

import pytest

from contents import SAMPLES
from logreel.model.registry import Format, formats
from logreel.testing import FormatSuite

TESTS = sorted(name for name in vars(FormatSuite) if name.startswith("test_"))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("fmt", formats().values(), ids=lambda fmt: fmt.name)
def test_it_conforms(fmt: Format, test: str) -> None:
    class Suite(FormatSuite):
        format = fmt
        # A shorter one of the same where there is one; damage in depth is tried by tests/damage.
        samples = [SAMPLES.get(fmt.suffixes[0], fmt.sample)]  # noqa: RUF012
        cuts = mutations = 12

    getattr(Suite(), test)()
