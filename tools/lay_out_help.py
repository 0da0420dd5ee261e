"""Lay out the help of all commands for the usual widths, in src/logreel/cli/static/help; run it after options change.

    .venv/bin/python tools/lay_out_help.py            writes the pages
    .venv/bin/python tools/lay_out_help.py --check    exits with 1 and names the pages that are not current

A page holds the colours of a terminal, and the texts for both widths of ``logreel.cli.PAGE_WIDTHS`` with a form feed
between them. Commands of other packages are on no page.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from logreel.cli import PAGE_WIDTHS
from logreel.cli.app import logreel
from logreel.registry.registry import COMMANDS, FORMATS

FOLDER = Path(__file__).resolve().parents[1] / "src/logreel/cli/static/help"
#: With these, rich takes any output for a terminal with colours and the size of COLUMNS.
TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm"}
OTHERS = ("COLORTERM", "NO_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TERMINAL_WIDTH", "RICH_CLICK_THEME")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each page and its text."""
    for name in OTHERS:
        os.environ.pop(name, None)
    os.environ.update(TERMINAL)
    for registry in (COMMANDS, FORMATS):
        registry.__dict__.update(_added={}, added_names=frozenset())
    yield from pages_of(logreel, click.Context(logreel, info_name="logreel", **logreel.context_settings))


def pages_of(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the page of *command* and of those in it."""
    texts = []
    for width in PAGE_WIDTHS:
        os.environ["COLUMNS"] = str(width)
        texts.append(f"{command.get_help(context)}\n")
    yield f"{context.command_path.replace(' ', '.')}.txt", "\f\n".join(texts)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        inner = command.get_command(context, name)
        if inner is not None:
            yield from pages_of(inner, click.Context(inner, info_name=name, parent=context))


def main() -> int:
    """Write or compare the pages; return the exit code."""
    current = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.txt")}
    made = dict(pages())
    old = sorted(name for name in {*current, *made} if current.get(name) != made.get(name))
    if "--check" in sys.argv[1:]:
        for name in old:
            sys.stderr.write(f"{name} is not current: run tools/lay_out_help.py\n")
        return 1 if old else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in old:
        path = FOLDER / name
        path.unlink(missing_ok=True)
        if name in made:
            path.write_text(made[name], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
