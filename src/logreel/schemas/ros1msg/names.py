"""Type names: built-in types, valid names, and names that mean the same type."""

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

#: Types that were moved to another package with the same fields; the current name is first.
SAME = (
    ("std_msgs/Header", "roslib/Header"),
    ("rosgraph_msgs/Log", "roslib/Log"),
    ("rosgraph_msgs/Clock", "roslib/Clock"),
    ("tf2_msgs/TFMessage", "tf/tfMessage"),
)
_SAME = {name: group for group in SAME for name in group}

#: Longest name that is accepted; real ones have fewer than 100 characters.
MAX_NAME = 255
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TYPE = re.compile(r"[A-Za-z_]\w*(?:/[A-Za-z_]\w*){0,2}", re.ASCII)


def is_name(text: str) -> bool:
    """Return whether *text* is a valid name of a field or a constant."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def is_type(text: str) -> bool:
    """Return whether *text* is a valid type name: ``T``, ``pkg/T`` or ``pkg/msg/T``."""
    return len(text) <= MAX_NAME and _TYPE.fullmatch(text) is not None


def short_name(name: str) -> str:
    """Return ``pkg/Type`` for ``pkg/Type`` and ``pkg/msg/Type``."""
    package, slash, rest = name.partition("/")
    return package + slash + rest.removeprefix("msg/")


def package_of(name: str) -> str:
    """Return the package of ``pkg/Type``, empty if there is none."""
    return name.rpartition("/")[0]


def spellings(name: str) -> tuple[str, ...]:
    """Return all names of the type *name*: itself, then those in other packages, current and former.

    Package rostools was renamed to roslib before the first release.
    """
    name = short_name(name)
    moved = "roslib/" + name.removeprefix("rostools/") if name.startswith("rostools/") else name
    group = (moved, *_SAME.get(moved, ()))
    before = ("rostools/" + n.removeprefix("roslib/") for n in group if n.startswith("roslib/"))
    return tuple(dict.fromkeys((name, *group, *before)))
