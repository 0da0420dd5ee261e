"""Help of the verbs: their examples, and a layout for narrow terminals."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from logreel.registry.commands import Example

#: Verbs by purpose, in the order of the help.
VERBS = {
    "Look": (
        "info", "summary", "health", "cat", "schema", "params", "text", "attachments", "notes", "stats", "du", "check",
        "ci", "diff", "compare", "tf", "sql", "plot", "report", "view",
    ),
    "Play": ("play",),
    "Make": (
        "convert", "record", "slice", "merge", "split", "sort", "edit", "recover", "migrate", "add", "index", "geotag",
        "verify",
    ),
    "Many logs": ("fleet", "dataset"),
    "Serve": ("serve",),
    "Help": ("demo", "formats", "definitions", "new-format", "completion"),
}  # fmt: skip
#: Key of the context of the running command in the ``meta`` that all contexts share.
CONTEXT = "logreel.context"
#: In fewer columns, each option has a line of its own, with its text below; two columns of text would be too narrow.
NARROW = 80
#: What rich-click lays help out by.
LAYOUT = {
    "command_groups": {"logreel": [{"name": name, "commands": list(verbs)} for name, verbs in VERBS.items()]},
    "max_width": 110,
    "text_paragraph_linebreaks": "\n\n",
    "commands_panel_title": "For one format",
}
#: Lines around a panel, and codes for colours.
_FRAME, _STYLE = re.compile("[│╭╮╰╯─]"), re.compile(r"\x1b\[[0-9;]*m")
#: A word of a command line, with the spaces inside its quotes.
_SHELL_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")


class _Section(NamedTuple):
    """Part of a help text: a heading, and pairs of a term and its text; verbatim terms are command lines."""

    title: str
    entries: list[tuple[str, str]]
    verbatim: bool = False


class WithExamples(click.Command):
    """A command with examples, which its help shows.

    examples  command lines, and what each does; a mapping, or the Examples of a command of a format
    numpy     whether NumPy is loaded for one thread before the function runs; False: by whom it needs, as the user said
    """

    #: Panels beside those that rich-click makes of options and commands: none.
    panels = ()

    def __init__(
        self,
        *args: Any,
        examples: Mapping[str, str] | Sequence[Example] = (),
        numpy: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.numpy = numpy
        pairs = examples.items() if isinstance(examples, Mapping) else examples
        #: Pairs of a line and a text.
        self.examples = [(line, text) for line, text in pairs]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args*; errors are worded with the options of this command from then on."""
        ctx.meta[CONTEXT] = ctx
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function of the command."""
        if self.numpy and not isinstance(self, click.Group):
            load_numpy()
        return super().invoke(ctx)

    def get_help(self, ctx: click.Context) -> str:
        """Return the help text for the width of the terminal."""
        from shutil import get_terminal_size

        width = get_terminal_size().columns
        if width >= NARROW:
            shown = self._panels(ctx)
            # Long names of values can make the column of texts narrower than their words.
            words = " ".join(param.help or "" for param in self.params if isinstance(param, click.Option))
            if {*words.split()} <= {*_FRAME.sub(" ", _STYLE.sub("", shown)).split()}:
                return shown
        return "\n".join(_narrow_lines(self, ctx, self._sections(ctx), max(width, 20)))

    def _panels(self, ctx: click.Context) -> str:
        """Return the help text in panels; rich is loaded for them."""
        from rich.panel import Panel
        from rich.text import Text
        from rich_click import RichCommand
        from rich_click.rich_context import RichContext
        from rich_click.rich_help_rendering import get_rich_help_text

        context: Any = RichContext(self, info_name=ctx.command_path, rich_help_config=LAYOUT)
        context.help_option_names = ctx.help_option_names
        formatter = context.make_formatter()
        self.format_usage(context, formatter)
        get_rich_help_text(self, context, formatter)
        # Takes any command with ``panels``.
        options: Any = RichCommand.format_options
        options(self, context, formatter)
        if self.examples:
            lines = [
                line
                for command_line, text in self.examples
                for line in (Text(command_line), Text(f"  {text}", "dim"))
            ]
            # The style of the other panels.
            formatter.write(
                Panel(Text("\n").join(lines), title="Examples", title_align="left", border_style="dim")
            )
        return str(formatter.getvalue()).rstrip("\n")

    def _sections(self, ctx: click.Context) -> Iterator[_Section]:
        """Yield options, commands and examples."""
        options = [
            param.get_help_record(ctx) for param in self.get_params(ctx) if isinstance(param, click.Option)
        ]
        yield _Section("Options", [record for record in options if record is not None])
        if isinstance(self, click.Group):
            yield from _command_sections(self, ctx)
        yield _Section("Examples", self.examples, verbatim=True)


class GroupWithExamples(WithExamples, click.Group):
    """A command group with examples, which its help shows."""


def load_numpy() -> None:
    """Load NumPy with one thread for OpenBLAS, unless the user sets another number, here and not for programs we start.

    OpenBLAS starts its threads when it is loaded, which takes longer than a small command, and no verb multiplies
    matrices that are worth a thread.
    """
    variable = "OPENBLAS_NUM_THREADS"
    if variable in os.environ or "numpy" in sys.modules:
        return
    os.environ[variable] = "1"
    try:
        importlib.import_module("numpy")
    finally:
        del os.environ[variable]


def verb(
    *, examples: Mapping[str, str], cls: type[WithExamples] = WithExamples, numpy: bool = True
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command of a function, as ``click.command()``, and add examples to its help.

    examples  command lines, which begin with ``logreel``, and what each does: a few words, no sentence
    numpy     see WithExamples

    Commands of a group are made by ``@group.command(cls=WithExamples, examples=…)``, and a group by
    ``@click.group(cls=GroupWithExamples)``. Tests run the examples on the samples of tests/cli/test_help.py, and
    compare them with those in docs/cli.md.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        command: click.Command = click.command(cls=cls, examples=examples, numpy=numpy)(function)
        return command

    return decorate


def _command_sections(group: click.Group, ctx: click.Context) -> Iterator[_Section]:
    """Yield the commands of *group*, by purpose where the group says it."""
    names = list(group.list_commands(ctx))
    parts: Mapping[str, Sequence[str]] = getattr(group, "purposes", {})
    rest = [name for name in names if not any(name in part for part in parts.values())]
    for title, part in (*parts.items(), ("For one format" if parts else "Commands", rest)):
        commands = [(name, group.get_command(ctx, name)) for name in part]
        yield _Section(
            title,
            [(name, command.get_short_help_str(1000)) for name, command in commands if command is not None],
        )


def _narrow_lines(
    command: click.Command, ctx: click.Context, sections: Iterator[_Section], width: int
) -> Iterator[str]:
    """Yield the help in lines of at most *width* columns; only words that are longer stick out."""
    yield from _wrapped(f"Usage: {ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}", width, 0)
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield ""
        yield from _wrapped(paragraph, width, 0)
    for section in sections:
        if not section.entries:
            continue
        yield ""
        yield f"{section.title}:"
        for term, text in section.entries:
            yield from shell_lines(term, width) if section.verbatim else _wrapped(term, width, 2)
            yield from _wrapped(text, width, 6)


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    """Return *text* in indented lines; words stay whole."""
    before = " " * indent
    return textwrap.wrap(
        text,
        width,
        initial_indent=before,
        subsequent_indent=before,
        break_long_words=False,
        break_on_hyphens=False,
    )


def shell_lines(line: str, width: int, indent: int = 2) -> Iterator[str]:
    r"""Yield a command line in indented parts that end with ``\``, so that a shell takes them together."""
    part = " " * indent
    units: list[str] = []
    for word in _SHELL_WORD.findall(line):
        # An option and its value stay together.
        if units and units[-1][:1] == "-" and " " not in units[-1] and word[:1] != "-":
            units[-1] += f" {word}"
        else:
            units.append(word)
    for word in units:
        # Two columns are left for the backslash.
        if part.strip() and len(part) + len(word) > width - 2:
            yield f"{part}\\"
            part = " " * (indent + 2)
        part += f"{word} "
    yield part.rstrip()
