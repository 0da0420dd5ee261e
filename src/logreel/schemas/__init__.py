"""Definition languages: what the text or the bytes of a schema say of messages.

``languages`` has one object for each language, which everything above asks; a module or folder for each has its parts.
``catalogue`` is what known definitions of all languages have in common, with those that the user added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logreel.limits import FixedLimit


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds of this room that no option raises."""
    from logreel.limits import REFUSED, FixedLimit
    from logreel.schemas import ros2idl, ros2msg
    from logreel.schemas.ros1msg import definition

    yield FixedLimit("bytes of a ROS 1 definition", definition.MAX_TEXT, "real ones have some kB", REFUSED)
    yield FixedLimit("bytes of a ROS 2 definition", ros2msg.MAX_TEXT, "real ones have some kB", REFUSED)
    yield FixedLimit("modules in one another of an IDL", ros2idl.MAX_MODULES, "real ones have two", REFUSED)
    yield FixedLimit(
        "characters of the name of a ROS type or field",
        definition.MAX_NAME,
        "real ones have fewer than 100",
        REFUSED,
    )
