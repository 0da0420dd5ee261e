"""Type names: which are built in, and which mean the same type."""

from __future__ import annotations

import re

#: Types that need no definition.
BUILTIN = frozenset(
    {
        "bool",
        "char",
        "byte",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float32",
        "float64",
        "string",
        "time",
        "duration",
    }
)

#: Types that moved from one package to another and kept their fields; the name of today comes first.
SAME = (
    ("std_msgs/Header", "roslib/Header"),
    ("rosgraph_msgs/Log", "roslib/Log"),
    ("rosgraph_msgs/Clock", "roslib/Clock"),
    ("tf2_msgs/TFMessage", "tf/tfMessage"),
)
_SAME = {name: group for group in SAME for name in group}

#: Longer names are garbage; real ones end below 100 characters.
MAX_NAME = 255
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TYPE = re.compile(r"[A-Za-z_]\w*(?:/[A-Za-z_]\w*){0,2}", re.ASCII)


def is_name(text: str) -> bool:
    """Whether *text* can name a field or a constant."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def is_type(text: str) -> bool:
    """Whether *text* can name a type: ``T``, ``pkg/T`` or ``pkg/msg/T``."""
    return len(text) <= MAX_NAME and _TYPE.fullmatch(text) is not None


def plain(name: str) -> str:
    """*name* as ``pkg/Type``, also where it came as ``pkg/msg/Type``."""
    package, slash, rest = name.partition("/")
    return package + slash + rest.removeprefix("msg/")


def package_of(name: str) -> str:
    """The package in ``pkg/Type``; empty where there is none."""
    return name.rpartition("/")[0]


def spellings(name: str) -> tuple[str, ...]:
    """All names of the type *name*: itself, then those that it has or had in other packages.

    The package rostools became roslib before the first release.
    """
    name = plain(name)
    moved = "roslib/" + name.removeprefix("rostools/") if name.startswith("rostools/") else name
    group = (moved, *_SAME.get(moved, ()))
    before = ("rostools/" + n.removeprefix("roslib/") for n in group if n.startswith("roslib/"))
    return tuple(dict.fromkeys((name, *group, *before)))
