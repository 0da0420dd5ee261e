"""``logreel FORMAT COMMAND``: commands for logs of one format, from the descriptions in ``Format.commands``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click.types as click_types
import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import GroupWithExamples, WithExamples

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.registry.commands import Command, Content, Option, Playback
    from logreel.registry.format import Format


class FormatGroup(GroupWithExamples):
    """The commands of one format, in its order; loaded when used, not for the general help."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt
        # The base class asks for the commands, which would import all of them for the general help.
        self._is_ready = False
        super().__init__(name=fmt.name, help=f"Commands for logs of one format: {fmt.title}.")
        self._is_ready = True

    @property  # type: ignore[override]
    def commands(self) -> dict[str, click.Command]:
        """Return the commands by name."""
        from logreel.registry.commands import commands_of

        if not self._is_ready:
            return {}
        return {one.name: _command(self._format.name, one) for one in commands_of(self._format)}

    @commands.setter
    def commands(self, given: dict[str, click.Command]) -> None:
        """Ignore the empty dict that the base class sets."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the format."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* begin with; raises UsageError that says which package has it."""
        package = self._format.more_commands.get(args[0])
        if package is not None and args[0] not in self.commands:
            ctx.fail(f"{args[0]!r} comes with another package: pip install {package}")
        return super().resolve_command(ctx, args)


def formats_with_commands() -> list[str]:
    """Return the names of the formats that have commands."""
    from logreel.registry.commands import has_commands
    from logreel.registry.registry import formats

    return [fmt.name for fmt in formats().values() if has_commands(fmt)]


def format_group(name: str) -> click.Group | None:
    """Return the command group of the format *name*; None if the format is unknown or has no commands."""
    from logreel.registry.commands import has_commands
    from logreel.registry.registry import formats

    fmt = formats().get(name)
    return FormatGroup(fmt) if fmt is not None and has_commands(fmt) else None


def _command(format_name: str, one: Command) -> click.Command:
    """Return the command line command for a Command of a format."""

    positional = [option for option in one.options if not option.flags]

    def run(
        logs: paths.Logs,
        as_json: bool,
        sink: str | None = None,
        settings: tuple[str, ...] = (),
        words: tuple[str, ...] = (),
        **options: Any,
    ) -> int:
        options |= _values(positional, words)
        return run_command(format_name, one, logs, as_json, options, sink, settings)

    decorated: Callable[..., Any] = common.as_json(paths.text_output(run))
    for add in reversed(_SINK_OPTIONS if one.plays else ()):
        decorated = add(decorated)
    for option in reversed([option for option in one.options if option.flags]):
        decorated = _option(option)(decorated)
    metavar = " ".join(["FILE…", *(f"[{option.name.upper()}]" for option in positional)])
    add_logs = common.logs_and_words(metavar, arguments.FILE) if positional else common.logs
    brief = one.help.partition(":")[0].partition(". ")[0].rstrip(".") + "."
    command: click.Command = click.command(
        one.name, cls=WithExamples, help=one.help, short_help=brief, examples=one.examples
    )(add_logs(decorated))
    return command


def _values(positional: list[Option], words: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of optional arguments, from the words on the command line that are no logs."""
    from logreel.errors import UsageError

    if len(words) > len(positional):
        raise UsageError(f"{words[len(positional)]!r} is no log, and no further word is expected")
    given = dict(zip((option.name for option in positional), words, strict=False))
    return {
        option.name: _click_type(option)(given[option.name]) if option.name in given else option.default
        for option in positional
    }


def _click_type(option: Option) -> click.ParamType:  # type: ignore[type-arg]
    kind: Any = click.Choice(option.kind) if isinstance(option.kind, tuple) else option.kind
    converted: click.ParamType = click_types.convert_type(kind)  # type: ignore[type-arg]
    return converted


_SINK_OPTIONS = (
    click.option(
        "--to",
        "sink",
        metavar="SINK",
        help="Play to a sink in real time: stdout, frames, foxglove, rerun, null, or a plug-in.",
    ),
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set an option of the sink."),
)


def _option(option: Option) -> Callable[[Any], Any]:
    if option.kind is bool:
        return click.option(*option.flags, option.name, is_flag=True, help=option.help)
    return click.option(
        *option.flags,
        option.name,
        type=_click_type(option),
        default=option.default,
        help=option.help,
        metavar=option.metavar or None,
    )


def run_command(
    format_name: str,
    one: Command,
    logs: paths.Logs,
    as_json: bool,
    options: dict[str, Any],
    sink: str | None = None,
    settings: tuple[str, ...] = (),
) -> int:
    """Run a Command on a log, print the result or play it to a sink, and return the exit code."""
    from logreel.errors import UsageError
    from logreel.ops.json_values import to_json_values
    from logreel.registry.commands import Content, Playback

    if settings and sink is None:
        raise UsageError("--set is for a sink: name it with --to")
    if as_json and sink is not None:
        raise UsageError("--json prints the steps, --to plays them: leave one of them out")
    if one.plays:
        logs.only(f"{one.name} plays one log")

    def answer(log: Log) -> int:
        if log.format != format_name:
            raise UsageError(
                f"a log of format {log.format}; this asks logs of format {format_name}", path=log.name
            )
        with contextlib.redirect_stdout(sys.stderr) if one.prints and as_json else contextlib.nullcontext():
            found = one.run(log, **options)
        if isinstance(found, Content):
            logs.only("bytes are of one log")
            return _write(log, found, as_json)
        if isinstance(found, Playback):
            if sink is not None:
                return draw.finish(log, _play(found, sink, settings))
            for step in found.rows() if as_json else ():
                draw.echo_json(to_json_values(step), line=True)
        elif as_json:
            rows = {found.key: found.rows()} if found.key else {}
            draw.echo_answer(log, logs.several, **to_json_values({**found.about, **rows}))
        for line in () if as_json else found.lines():
            draw.echo(line)
        return draw.finish(log)

    return common.each_log(logs, answer, not as_json)


def _write(log: Log, found: Content, as_json: bool) -> int:
    """Write the bytes that a command extracted to stdout, which -o sends to a file."""
    from logreel.errors import UsageError

    for note in found.notes:
        draw.say(note)
    if as_json:
        draw.echo_answer(log, **found.about)
    elif sys.stdout.isatty():
        raise UsageError("bytes are not for a terminal: write them to a file with -o, or to a program")
    else:
        sys.stdout.flush()
        for part in found.parts():
            sys.stdout.buffer.write(part)
    return draw.finish(log)


def _play(found: Playback, name: str, settings: tuple[str, ...]) -> list[str]:
    """Play the result of a command to a sink; return what the sink skipped."""
    from logreel.cli.play import play_to_end, sink_options
    from logreel.ops.replay import Player
    from logreel.outputs.sinks.registry import sink

    to = sink(name, **sink_options(settings))
    # The log can be a temporary file, which must not stay.
    with found.log() as log:
        play_to_end(Player([log], rate=found.rate, sink=to))
    return to.skipped
