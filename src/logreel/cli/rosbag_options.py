"""Options of ``rosbag play`` that are written in another way than those of ``logreel play``."""

from __future__ import annotations

import os
from collections.abc import Sequence

import rich_click as click

from logreel.cli.help import WithExamples

#: Rate of ``/clock`` where none is given, Hz.
CLOCK_HZ = 100.0
#: Options that ``rosbag play`` gives several values at once, with the option here for each value; empty: files.
_LISTS = {"--topics": "--topic", "--pause-topics": "--pause-topics", "--bags": ""}


def translated(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with options of ``rosbag play`` as ``logreel play`` has them.

    ``/old:=/new``, which is no file, becomes ``--rename``; ``--topics A B`` becomes an option for each name; ``--bags``
    is left out, so that its values are files; ``--clock`` without a number gets one.
    """
    found: list[str] = []
    many: str | None = None
    for n, word in enumerate(words):
        if word == "--":
            return [*found, *words[n:]]
        name, equals, value = word.partition("=")
        if name in _LISTS:
            many = None if equals else _LISTS[name]
            found += ([f"{_LISTS[name]}={value}"] if _LISTS[name] else [value]) if equals else []
        elif word[:1] == "-" and word != "-":
            many = None
            found.append(word)
            if word == "--clock" and not _is_number(words[n + 1 : n + 2]):
                found[-1] = f"--clock={CLOCK_HZ:g}"
        elif many:
            found.append(f"{many}={word}")
        elif ":=" in word and not os.path.exists(word) and words[n - 1 : n] != ["--rename"]:
            found.append(f"--rename={word}")
        else:
            found.append(word)
    return found


def _is_number(words: Sequence[str]) -> bool:
    try:
        return bool(words) and float(words[0]) == float(words[0])
    except ValueError:
        return False


class PlayCommand(WithExamples):
    """Command that also understands the options of ``rosbag play``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args* after their translation."""
        return super().parse_args(ctx, translated(args))
