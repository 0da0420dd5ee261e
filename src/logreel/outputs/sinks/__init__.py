"""Sinks of a replay: what receives the messages that a Player plays.

``sink`` makes one by its name, bundled or of another package (entry points ``logreel.sinks``). ``stdout`` has those
that need no other program (lines, frames, nothing); ``foxglove``, ``rerun`` and ``ros`` send to these programs. A sink
is a subclass of ``logreel.ops.replay.Sink`` and imports the packages that it needs when it is made. The verb ``play``,
``logreel.sink`` and ``testing`` use these modules; other outputs do not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from logreel.errors import LogError, UsageError
from logreel.ops.replay import Sink
from logreel.registry.registry import Registry, check_options, lazy

#: Group of entry points: classes or functions that return a Sink, with its options as keywords.
GROUP = "logreel.sinks"
#: A new sink is a module and a line here.
SINKS: Registry[Callable[..., Any]] = Registry(
    "sink",
    GROUP,
    {
        "stdout": lazy("logreel.outputs.sinks.stdout:Stdout"),
        "null": lazy("logreel.outputs.sinks.stdout:Null"),
        "frames": lazy("logreel.outputs.sinks.stdout:FrameLines"),
        "foxglove": lazy("logreel.outputs.sinks.foxglove:Foxglove"),
        "rerun": lazy("logreel.outputs.sinks.rerun:Rerun"),
        "ros": lazy("logreel.outputs.sinks.ros:Ros"),
    },
)


def sink_names() -> list[str]:
    """Return the names of all sinks, bundled ones first."""
    return SINKS.names()


def sink(name: str, **options: Any) -> Sink:
    """Return a new Sink for a Player.

    options  of the sink; text is converted to the type of the option's default: number, bool or text

    Raises UsageError for an unknown sink or option.
    """
    make = SINKS.load(name)
    if make is None:
        raise UsageError(f"no sink {name!r}; there are: {', '.join(sink_names())}")
    made = make(**_options(name, make, options))
    if not isinstance(made, Sink):
        raise LogError(f"the sink plug-in {name!r} gave no Sink, but {type(made).__name__}")
    return made


def _options(name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    known = {p.name: p for p in inspect.signature(make).parameters.values() if p.kind is not p.VAR_POSITIONAL}
    check_options(f"the sink {name!r}", known, options)
    return {option: _value(option, value, known[option].default) for option, value in options.items()}


def _value(option: str, value: Any, default: Any) -> Any:
    """Return *value*, text converted to the type of *default*."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    try:
        if isinstance(default, bool):
            return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}[
                value.lower()
            ]
        return type(default)(value) if isinstance(default, (int, float)) else value
    except (KeyError, ValueError):
        expected = "yes or no" if isinstance(default, bool) else "a number"
        raise UsageError(f"the option {option!r} is {expected}, not {value!r}") from None
