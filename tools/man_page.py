"""Write the manual page from the option objects: ``python tools/man_page.py [OUT]``, by default build/man/logreel.1.

One page has all verbs, so that ``man logreel`` and a search in it find everything. It is made, not kept: ``make man``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from logreel._version import __version__
from logreel.cli.app import logreel
from logreel.cli.help import VERBS, WithExamples

OUT = Path(__file__).resolve().parents[1] / "build/man/logreel.1"
#: What several verbs share, and the page would otherwise say only in the help of one.
EXIT_CODES = {
    "0": "success",
    "1": "failed: no such file, output exists, disk full, the log uses an unsupported feature",
    "2": "wrong usage",
    "3": "finished, but the log has lost data, something was left out, or one of several files could not be opened",
    "4": "check or health found something, or diff found differences",
    "5": "not a log of a known format",
    "130, 143, 129": "ended by Ctrl-C, SIGTERM or SIGHUP; unfinished files are removed",
}
ENVIRONMENT = {
    "LOGREEL_CACHE": "folder of indexes; off: none are kept",
    "LOGREEL_DATA": "folder of added definitions and of layouts",
    "LOGREEL_LIMITS": "bounds of what a log may use, such as chunk_bytes=4G",
    "LOGREEL_TOKEN": "token of serve, view and play --to foxglove",
    "LOGREEL_TRACEBACK": "1: show the traceback of an error",
    "NO_COLOR": "1: no colours",
}


def roff(text: str) -> str:
    """Return a text with what troff would take for its own escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text, with a macro between paragraphs."""
    for number, part in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield roff(" ".join(part.split()))


def option_lines(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the options of a command: names in bold, then the text."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            yield ".TP"
            yield rf"\fB{roff(record[0])}\fP"
            yield roff(" ".join(record[1].split())) or r"\&"


def verb_lines(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the part of a verb, and of the verbs in a group."""
    name = context.command_path
    usage = " ".join(command.collect_usage_pieces(context))
    yield f'.SS "{roff(name.removeprefix("logreel "))}"'
    yield rf"\fB{roff(name)}\fP {roff(usage)}"
    yield ".PP"
    yield from paragraphs(command.help or "")
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from verb_lines(found, click.Context(found, info_name=inner, parent=context))
        return
    yield from option_lines(command, context)
    examples = command.examples if isinstance(command, WithExamples) else []
    if examples:
        yield ".PP"
        yield "Examples:"
    for line, text in examples:
        yield ".TP"
        yield rf"\f(CW{roff(line)}\fP"
        yield roff(text)


def listed(values: dict[str, str]) -> Iterator[str]:
    """Yield terms with their texts."""
    for term, text in values.items():
        yield from (".TP", rf"\fB{roff(term)}\fP", roff(text))


def page() -> str:
    """Return the manual page."""
    context = click.Context(logreel, info_name="logreel", **logreel.context_settings)
    lines = [
        f'.TH LOGREEL 1 "" "logreel {__version__}" "User Commands"',
        ".SH NAME",
        r"logreel \- inspect, convert and edit logs of robots, drones, vehicles and simulators",
        ".SH SYNOPSIS",
        r"\fBlogreel\fP \fIVERB\fP [\fIOPTION\fP]... \fIFILE\fP...",
        ".SH DESCRIPTION",
        *paragraphs(logreel.help or ""),
    ]
    for purpose, verbs in VERBS.items():
        lines += [".SH " + roff(f"VERBS: {purpose.upper()}")]
        for verb in verbs:
            command = logreel.get_command(context, verb)
            assert command is not None, verb
            lines += verb_lines(command, click.Context(command, info_name=verb, parent=context))
    known = {verb for verbs in VERBS.values() for verb in verbs}
    lines += [".SH VERBS OF SINGLE FORMATS"]
    for name in logreel.list_commands(context):
        command = logreel.get_command(context, name)
        if name not in known and command is not None:
            lines += verb_lines(command, click.Context(command, info_name=name, parent=context))
    lines += [".SH EXIT STATUS", *listed(EXIT_CODES), ".SH ENVIRONMENT", *listed(ENVIRONMENT)]
    lines += [
        ".SH FILES",
        *listed({"~/.cache/logreel": "indexes", "~/.local/share/logreel": "definitions, layouts"}),
    ]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Write the page, and return the exit code."""
    out = Path(words[0]) if words else OUT
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(), "utf-8")
    sys.stdout.write(f"wrote {out}: man -l {out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
