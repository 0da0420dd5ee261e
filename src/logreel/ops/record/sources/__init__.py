"""Live sources: where messages of a recording come from.

``live_source`` makes one from its spelling, ``udp://127.0.0.1:9000``, bundled or of another package (entry points
``logreel.sources``). ``streams`` reads bytes of sockets, serial ports and files, ``foxglove`` is a client of Foxglove
servers, ``ros`` runs ``ros_node`` in the Python of a ROS installation, which has only the standard library and rospy.
Only the recording imports them, by name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from logreel.errors import LogError, UsageError
from logreel.ops.record.source import LiveSource
from logreel.registry.registry import Registry, check_options, lazy

#: Group of entry points: classes or functions that return a LiveSource from an address and options.
GROUP = "logreel.sources"
#: A new source is a module and a line here. Each is called with the address, which is what follows the colon after
#: its name, slashes included, and with options as keywords.
SOURCES: Registry[Callable[..., Any]] = Registry(
    "source",
    GROUP,
    {
        "lines": lazy("logreel.ops.record.sources.streams:LinesSource"),
        "udp": lazy("logreel.ops.record.sources.streams:UdpSource"),
        "tcp": lazy("logreel.ops.record.sources.streams:TcpSource"),
        "serial": lazy("logreel.ops.record.sources.streams:SerialSource"),
        "tum": lazy("logreel.ops.record.sources.trajectories:TumSource"),
        "kitti": lazy("logreel.ops.record.sources.trajectories:KittiSource"),
        "euroc": lazy("logreel.ops.record.sources.trajectories:EurocSource"),
        "ros": lazy("logreel.ops.record.sources.ros:RosSource"),
        "foxglove": lazy("logreel.ops.record.sources.foxglove:FoxgloveSource"),
        "ws": lazy("logreel.ops.record.sources.foxglove:at_ws"),
        "wss": lazy("logreel.ops.record.sources.foxglove:at_wss"),
    },
)
#: A name alone has an empty address; the file of that name is ``./NAME``.
_SPELLING = re.compile(r"([a-z][a-z0-9+_-]+)(?::(.*))?", re.DOTALL)


def source_names() -> list[str]:
    """Return the names of all kinds of sources, bundled ones first."""
    return SOURCES.names()


def live_source(spelling: str, **options: Any) -> LiveSource:
    """Return the LiveSource that *spelling* names: ``NAME:ADDRESS``, or ``NAME``.

    options  of the source, see its page; an option that is None is left out

    Raises UsageError for an unknown source or option, or an invalid address.
    """
    match = _SPELLING.fullmatch(spelling)
    name, address = match.groups("") if match else ("", "")
    make = SOURCES.load(name)
    if make is None:
        raise UsageError(
            f"{spelling!r} names no source; sources begin with {_beginnings()}",
            hint="a file with lines of JSON is lines:FILE",
        )
    passed = {option: value for option, value in options.items() if value is not None}
    known = [p.name for p in inspect.signature(make).parameters.values() if p.kind is p.KEYWORD_ONLY]
    check_options(f"the source {name!r}", known, passed)
    made = make(address, **passed)
    if not isinstance(made, LiveSource):
        raise LogError(f"the source plug-in {name!r} gave no LiveSource, but {type(made).__name__}")
    return made


def names_source(text: str) -> bool:
    """Return whether *text* is the spelling of a source, not the path of a file.

    A name without an address is one if the source needs none.
    """
    match = _SPELLING.fullmatch(text)
    if match is None or match[1] not in source_names():
        return False
    make = SOURCES.load(match[1])
    return match[2] is not None or (make is not None and _needs_no_address(make))


def _needs_no_address(make: Callable[..., Any]) -> bool:
    parameters = [p for p in inspect.signature(make).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    return all(p.default is not p.empty or p.kind is p.VAR_POSITIONAL for p in parameters)


def has_option(spelling: str, option: str) -> bool:
    """Return whether the source with this spelling has a keyword *option*."""
    match = _SPELLING.fullmatch(spelling)
    make = SOURCES.load(match[1]) if match else None
    return make is not None and option in inspect.signature(make).parameters


def _beginnings() -> str:
    return ", ".join(f"{name}:" for name in source_names())
