"""Definitions in another spelling: types named where they are used as they are defined."""

from __future__ import annotations

from collections.abc import Mapping

from logreel.schemas.ros1msg.grammar import Message
from logreel.schemas.ros1msg.names import BUILTIN, short_name

HEADER = "std_msgs/Header"


def respelled(message: Message, uses: Mapping[str, str], names: Mapping[str, str], package: str = "") -> str:
    """Return the text of *message*, whose types are named so that the rules of other parsers find them.

    uses     names of the messages that its field types mean, by type as written
    names    new name of each message
    package  package that the message will be in; empty: its own
    """
    lines = message.text.split("\n")
    for n, line in enumerate(lines):
        code = line.partition("#")[0].partition("=")[0]
        if "\t" in code.strip():
            # genmsg accepts only blanks between the words of a line.
            lines[n] = line = code.replace("\t", " ") + line[len(code) :]
        if not code.strip() or "=" in line.partition("#")[0]:
            continue
        written = code.split(None, 1)[0].partition("[")[0]
        if written in BUILTIN:
            continue
        meant = names[uses[written]]
        if _usual(written, package or message.package) != meant:
            lines[n] = line.replace(written, meant, 1)
    return "\n".join(lines)


def _usual(written: str, package: str) -> str:
    """Return the type that other parsers understand by *written* in a message of *package*."""
    if written == "Header":
        return HEADER
    # Not every parser accepts ``pkg/msg/Type``.
    return written if "/" in written and short_name(written) == written else f"{package}/{written}"
