"""All commands of the command line."""

from __future__ import annotations

from collections.abc import Iterator

import click

from logreel.cli.app import logreel as group
from logreel.cli.help import VERBS


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield all commands but those of single formats, with their names: ``slice``, ``fleet ingest`` …"""
    for verb in (verb for some in VERBS.values() for verb in some):
        command = group.get_command(click.Context(group), verb)
        for name, one in getattr(command, "commands", {"": command}).items():
            yield f"{verb} {name}".strip(), one
