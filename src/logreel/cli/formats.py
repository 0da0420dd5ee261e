"""Verbs about formats: formats, definitions, new-format, and ``logreel FORMAT COMMAND`` from what formats describe."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import click.types as click_types

from logreel.cli import draw, inputs, options
from logreel.cli.help import GroupWithExamples, WithExamples, verb

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.registry.commands import Command, Content, Option, Playback
    from logreel.registry.format import Format
    from logreel.schemas.catalogue import Entry

ADD, LIST, FIND = "add", "list", "find"
#: Files of a new package for a format, by their template; NAME is that of the format.
SKELETON = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "format.py": "src/logreel_NAME/__init__.py",
    "test_format.py": "tests/test_NAME.py",
}


@verb(
    examples={
        "logreel formats": "what can be read and written",
        "logreel formats --json": "the same as JSON",
    },
)
@inputs.text_output
@options.answer
def formats(as_json: bool) -> int:
    """List the formats that can be read and the outputs that can be written."""
    from logreel.outputs.registry import OUTPUTS, Shape
    from logreel.registry.registry import formats as known

    inputs = [
        {"name": f.name, "title": f.title, "versions": f.versions, "suffixes": list(f.suffixes)}
        for f in known().values()
    ]
    outputs = [
        {"suffix": o.suffix, "title": o.title, "folder": o.shape is not Shape.WHOLE}
        for o in OUTPUTS.all().values()
    ]
    if as_json:
        draw.echo_json({"formats": inputs, "outputs": outputs})
        return 0
    rows = [(f.name, f.title, f.versions, " ".join(f.suffixes)) for f in known().values()]
    draw.table(("reads", "title", "versions", "suffixes"), rows)
    draw.echo()
    draw.table(("converts to", "title"), [(" or ".join(o.names), o.title) for o in OUTPUTS.all().values()])
    return 0


@verb(
    examples={
        "logreel definitions list 'sensor_msgs/*'": "known types and their versions",
        "logreel definitions find std_msgs/Header": "the text of a type",
    },
)
@click.argument("what", type=click.Choice([ADD, LIST, FIND]), metavar="add|list|find")
@click.argument("values", metavar="[PATH…|PATTERN…|NAME…|MD5…]", nargs=-1, type=options.FILE)
@options.decrypt
@inputs.text_output
@options.answer
def definitions(what: str, values: tuple[str, ...], decrypt: bool, as_json: bool) -> int:
    """Show the known message definitions, which are used for logs without definitions, or add some.

    "definitions list [PATTERN…]" lists types and versions, "definitions find NAME…" shows the text of a type or of an
    MD5 checksum, "definitions add PATH…" stores .msg files, folders of packages, or the definitions in logs.
    """
    from logreel.errors import UsageError
    from logreel.ops.definitions import find
    from logreel.ops.definitions import list as list_entries

    if what == ADD:
        return _add(values, decrypt, as_json)
    if what == FIND and not values:
        raise UsageError("say what to find: a type such as std_msgs/Header, or an MD5 checksum")
    several = map(find, values) if what == FIND else map(list_entries, values or ("*",))
    chosen = list(dict.fromkeys(entry for entries in several for entry in entries))
    if as_json:
        draw.echo_json({"definitions": [entry.as_dict(text=what == FIND) for entry in chosen]})
    elif what == LIST:
        rows = [(entry.name, entry.version, entry.source) for entry in chosen]
        draw.table(("type", "version", "source"), rows)
    else:
        for number, entry in enumerate(chosen):
            if number:
                draw.echo()
            _show_definition(entry)
    if what == LIST and not chosen:
        draw.say(f"no known type is called {' or '.join(values)}")
    return 0


def _add(values: tuple[str, ...], decrypt: bool, as_json: bool) -> int:
    from logreel.cli.exits import LOST
    from logreel.ops.definitions import add
    from logreel.schemas.catalogue import data_folder

    done = add(*values, decrypt=decrypt)
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        for entry in done.added:
            draw.echo(f"{entry.name}  {entry.version}")
        known = f", {len(done.known)} known already" if done.known else ""
        plural = "" if len(done.added) == 1 else "s"
        draw.say(f"added {len(done.added)} definition{plural}{known}; they are in {data_folder()}")
    for text in done.problems:
        draw.say(text)
    return LOST if done.problems else 0


def _show_definition(entry: Entry) -> None:
    """Print one definition for people."""
    draw.echo(f"{entry.name}  ({entry.language}, {entry.version})")
    draw.echo(f"  source: {entry.source}")
    if entry.path is not None:
        draw.echo(f"  file: {entry.path}")
    for line in entry.text.splitlines():
        draw.echo(f"  | {line}")


@verb(
    examples={
        "logreel new-format thermo": "a package in logreel-thermo that reads logs named x.thermo",
        "logreel new-format thermo -o thermo-reader": "in another folder",
    },
)
@click.argument("name", metavar="NAME")
@click.option("-o", "--output", "out", metavar="OUT", help="Folder of the package, instead of logreel-NAME.")
def new_format(name: str, out: str | None) -> int:
    """Begin a package that adds a format: a small reader that works, its entry point, and the tests of all formats.

    NAME is what the format is called in 'logreel formats': lower-case letters, digits and _. OUT must not exist yet.
    Then replace the layout of the example by that of your logs.
    """
    from keyword import iskeyword

    from logreel.errors import LogError, UsageError
    from logreel.outputs.files import new_folder
    from logreel.registry.registry import formats as known

    if not re.fullmatch("[a-z][a-z0-9_]{0,63}", name) or iskeyword(name):
        raise UsageError(
            f"{name!r} is no name for a format: lower-case letters, digits and _, beginning with a letter"
        )
    if name in known():
        raise UsageError(f"there is a format {name!r} already")
    target = Path(out or f"logreel-{name}").expanduser()
    if target.exists() or target.is_symlink():
        raise LogError("it exists already: another folder is given with -o", path=str(target))
    templates = Path(__file__).with_name("static") / "new_format"
    with new_folder(target) as folder:
        for template, place in SKELETON.items():
            path = folder / place.replace("NAME", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (templates / f"{template}.txt").read_text("utf-8")
            path.write_text(text.replace("NAME", name), "utf-8")
    for place in SKELETON.values():
        draw.echo(str(target / place.replace("NAME", name)))
    draw.say(f"next: cd {target} && pip install -e '.[test]' && pytest")
    return 0


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
        from logreel.registry.registry import commands_of

        if not self._is_ready:
            return {}
        return {command.name: _command(self._format.name, command) for command in commands_of(self._format)}

    @commands.setter
    def commands(self, by_name: dict[str, click.Command]) -> None:
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
    from logreel.registry.registry import formats, has_commands

    return [fmt.name for fmt in formats().values() if has_commands(fmt)]


def format_group(name: str) -> click.Group | None:
    """Return the command group of the format *name*; None if the format is unknown or has no commands."""
    from logreel.registry.registry import formats, has_commands

    fmt = formats().get(name)
    return FormatGroup(fmt) if fmt is not None and has_commands(fmt) else None


def _command(format_name: str, command: Command) -> click.Command:
    """Return the command line command for a Command of a format."""

    positional = [option for option in command.options if not option.flags]

    def run(
        logs: inputs.Logs,
        as_json: bool,
        sink: str | None = None,
        settings: tuple[str, ...] = (),
        words: tuple[str, ...] = (),
        **values: Any,
    ) -> int:
        values |= _values(positional, words)
        return _run_command(format_name, command, logs, as_json, values, sink, settings)

    decorated: Callable[..., Any] = options.answer(inputs.text_output(run))
    for add in reversed(_SINK_OPTIONS if command.plays else ()):
        decorated = add(decorated)
    for option in reversed([option for option in command.options if option.flags]):
        decorated = _option(option)(decorated)
    metavar = " ".join(["FILE…", *(f"[{option.name.upper()}]" for option in positional)])
    add_logs = inputs.logs_and_words(metavar, options.FILE) if positional else inputs.logs()
    brief = command.help.partition(":")[0].partition(". ")[0].rstrip(".") + "."
    made: click.Command = click.command(
        command.name,
        cls=WithExamples,
        help=command.help,
        short_help=brief,
        examples=command.examples,
        # Code of the user may multiply matrices.
        numpy=not command.prints,
    )(add_logs(decorated))
    return made


def _values(positional: list[Option], words: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of optional arguments, from the words on the command line that are no logs."""
    from logreel.errors import UsageError

    if len(words) > len(positional):
        raise UsageError(f"{words[len(positional)]!r} is no log, and no further word is expected")
    texts = dict(zip((option.name for option in positional), words, strict=False))
    return {
        option.name: _click_type(option)(texts[option.name]) if option.name in texts else option.default
        for option in positional
    }


def _click_type(option: Option) -> click.ParamType:  # type: ignore[type-arg]
    value_type: Any = click.Choice(option.kind) if isinstance(option.kind, tuple) else option.kind
    converted: click.ParamType = click_types.convert_type(value_type)  # type: ignore[type-arg]
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


def _run_command(
    format_name: str,
    command: Command,
    logs: inputs.Logs,
    as_json: bool,
    values: dict[str, Any],
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
    if not command.opens:
        return _write_made(logs.only(f"{command.name} takes one file"), command, as_json, values)
    if command.plays:
        logs.only(f"{command.name} plays one log")

    def answer(log: Log) -> int:
        if log.format not in (format_name, *command.formats):
            raise UsageError(
                f"a log of format {log.format}; this asks logs of format {format_name}", path=log.name
            )
        with (
            contextlib.redirect_stdout(sys.stderr) if command.prints and as_json else contextlib.nullcontext()
        ):
            result = command.run(log, **values)
        if isinstance(result, Content):
            logs.only("bytes are of one log")
            return _write(log, result, as_json)
        if isinstance(result, Playback):
            if sink is not None:
                return draw.finish(log, _play(result, sink, settings))
            if as_json:
                draw.echo_json_lines(to_json_values(step) for step in result.rows())
        elif as_json:
            rows = {result.key: result.rows()} if result.key else {}
            draw.echo_answer(log, logs.several, **to_json_values({**result.about, **rows}))
        for line in () if as_json else result.lines():
            draw.echo(line)
        return draw.finish(log)

    return inputs.each_log(logs, answer, not as_json)


def _write(log: Log, result: Content, as_json: bool) -> int:
    """Write the bytes that a command extracted to stdout, which -o sends to a file."""
    _write_parts(result, None if not as_json else lambda: draw.echo_answer(log, **result.about))
    return draw.finish(log)


def _write_made(path: inputs.Names, command: Command, as_json: bool, values: dict[str, Any]) -> int:
    """Run a Command that opens *path* itself, and write the bytes that it makes."""
    from logreel.cli.exits import LOST

    result = cast("Content", command.run(path, **values))
    answer = {"path": path, **result.about, "notes": list(result.notes), "lost": list(result.lost)}
    _write_parts(result, None if not as_json else lambda: draw.echo_json(answer))
    for text in result.lost:
        draw.say(text)
    return LOST if result.lost else 0


def _write_parts(result: Content, answer: Callable[[], None] | None) -> None:
    """Write bytes to stdout; with an *answer*, only this."""
    from logreel.errors import UsageError

    for note in result.notes:
        draw.say(note)
    if answer is not None:
        answer()
    elif sys.stdout.isatty():
        raise UsageError("bytes are not for a terminal: write them to a file with -o, or to a program")
    else:
        sys.stdout.flush()
        for part in result.parts():
            sys.stdout.buffer.write(part)


def _play(result: Playback, name: str, settings: tuple[str, ...]) -> list[str]:
    """Play the result of a command to a sink; return what the sink skipped."""
    from logreel.cli.play import play_to_end, sink_options
    from logreel.ops.replay import Player
    from logreel.outputs.sinks import sink

    to = sink(name, **sink_options(settings))
    # The log can be a temporary file, which must not stay.
    with result.log() as log:
        play_to_end(Player([log], rate=result.rate, sink=to))
    return to.skipped
