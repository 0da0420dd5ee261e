"""Exit codes, and errors as one sentence in words of the command line."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence

import click

from logreel.cli.draw import say
from logreel.errors import (
    IncompleteOutputError,
    LogError,
    NotFoundError,
    TopicError,
    UnknownFormatError,
    UsageError,
    missing,
)

FAILED, USAGE, LOST, FOUND, UNKNOWN_FORMAT, INTERRUPTED = 1, 2, 3, 4, 5, 130


#: Options of other programs, with the option here that does the same.
ALIASES = {
    "--limit": "--count", "--max": "--count", "--num": "--count", "--head": "--count", "--number": "--count",
    "--begin": "--start", "--since": "--start", "--from": "--start", "--start-time": "--start",
    "--stop": "--end", "--until": "--end", "--to": "--end", "--end-time": "--end",
    "--channel": "--topic", "--channels": "--topic", "--include": "--topic", "--out": "--output",
    "--overwrite": "--force", "--yes": "--force", "-f": "--force", "-y": "--force",
}  # fmt: skip


def report(error: BaseException, args: Sequence[str] = (), context: click.Context | None = None) -> int:
    """Print *error* as one sentence on stderr and return its exit code.

    args     words of the command line
    context  that of the command that they name
    """
    if isinstance(error, BrokenPipeError):
        # The reader of the pipe has closed it.
        return 0
    if isinstance(error, (KeyboardInterrupt, click.exceptions.Abort)):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, SystemExit):
        if error.code in (0, None):
            # Nothing here ends so: the verb did not do its work.
            say("a plug-in or a library ended the program before the work was done")
            return FAILED
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, IncompleteOutputError) and len(error.skipped) > 1:
        for text in error.skipped:
            say(text)
    say(sentence(error, context) + advice(error, args))
    if isinstance(error, (UsageError, NotFoundError, click.UsageError)):
        return USAGE
    return UNKNOWN_FORMAT if isinstance(error, UnknownFormatError) else FAILED


def advice(error: BaseException, args: Sequence[str] = ()) -> str:
    """Return a suggestion for *args*; empty if there is none."""
    if isinstance(error, TopicError) and "," in error.name and not {*":="} & {*error.name}:
        names = [name.strip() for name in error.name.split(",") if name.strip()]
        flag = "-x" if _was_excluded(error.name, args) else "-t"
        return f"; several are given one by one: {' '.join(f'{flag} {name}' for name in names)}"
    return ""


def _was_excluded(name: str, args: Sequence[str]) -> bool:
    """Return whether *name* was given with -x."""
    before = [flag for flag, value in itertools.pairwise(args) if value == name]
    return bool({"-x", "--exclude"} & {*before}) or f"-x{name}" in args or f"--exclude={name}" in args


def _option_suggestion(error: click.NoSuchOption) -> str:
    """Return ``; did you mean …?`` for an unknown option; empty if no option is similar."""
    from difflib import get_close_matches

    if error.ctx is None:
        return ""
    known = [
        name
        for option in error.ctx.command.params
        if isinstance(option, click.Option)
        for name in option.opts
    ]
    near = [ALIASES[error.option_name]] if ALIASES.get(error.option_name) in known else []
    near = near or get_close_matches(error.option_name, [name for name in known if name[:2] == "--"], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


#: In a hint: a parameter, ``name=`` or ``name=value``; and a function, ``logreel.name`` or ``logreel.name(…)``.
_PARAMETER = re.compile(r"""\b([a-z]\w*)=('[^']*'|"[^"]*"|[\w.+-]*)""")
_FUNCTION = re.compile(r"\blogreel\.(?:\w+\.)*(\w+)(?:\(([^()]*)\))?")


def worded(hint: str, context: click.Context | None = None) -> str:
    """Return a hint of the library in words of the command line.

    Parameters become options, of the running command or of those that many commands share, and functions the verbs of
    their name, with the options for their arguments, or options of the running command; of ``logreel.open(…)`` only its
    options stay. Everything else stays as it is.
    """
    from logreel.cli.help import VERBS
    from logreel.cli.options import shared

    # Short spellings are those that all commands share: -t, -S …
    common = {name: (option.opts[0], option) for name, option in shared().items()}
    own = {} if context is None else _options(context.command)
    known = common | {
        name: pair for name, pair in own.items() if name not in common or common[name][1].opts != pair[1].opts
    }

    def function(match: re.Match[str]) -> str:
        name, arguments = match.groups()
        if name in known:
            spelling, option = known[name]
            return f"{spelling} {option.metavar or ''}".rstrip()
        if name == "open":
            # Verbs open their logs themselves, with options for what is said here.
            words = [_option(argument, known) for argument in _PARAMETER.finditer(arguments or "")]
            return " ".join(words) or match[0]
        if not any(name in verbs for verbs in VERBS.values()):
            return match[0]
        group = None if context is None else context.find_root().command
        verb = (
            group.get_command(context.find_root(), name)
            if context and isinstance(group, click.Group)
            else None
        )
        options = common if verb is None else _options(verb)
        words = [_option(argument, options) for argument in _PARAMETER.finditer(arguments or "")]
        return f"'{' '.join(['logreel', name, *words])}'"

    return _PARAMETER.sub(lambda match: _option(match, known), _FUNCTION.sub(function, hint))


def _options(command: click.Command) -> dict[str, tuple[str, click.Option]]:
    """Return the options of a command with their long spelling, by the names of the parameters that they stand for."""
    from logreel.cli.options import spelling_of

    return {
        param.name: (spelling_of(param), param)
        for param in command.params
        if isinstance(param, click.Option) and param.name is not None
    }


def _option(match: re.Match[str], options: Mapping[str, tuple[str, click.Option]]) -> str:
    """Return a parameter as it is given on the command line; unchanged if there is no option for it."""
    if match[1] not in options:
        return match[0]
    spelling, option = options[match[1]]
    value = match[2].strip("'\"")
    return spelling if option.is_flag or not value else f"{spelling} {value}"


def sentence(error: BaseException, context: click.Context | None = None) -> str:
    """Return the message of *error* for people, in words of the running command or of the command line as a whole."""
    match error:
        case click.NoSuchOption():
            path = error.ctx.command_path if error.ctx else "logreel"
            return f"no such option {error.option_name!r}{_option_suggestion(error)}; see '{path} --help'"
        case click.ClickException():
            text = error.format_message().rstrip(".")
            path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "logreel"
            return f"{text[:1].lower()}{text[1:]}; see '{path} --help'"
        case LogError():
            return error.with_hint(worded(error.hint, context)) if error.hint else str(error)
        case OSError() if error.strerror:
            what = error.strerror[:1].lower() + error.strerror[1:]
            return (
                f"{os.fsdecode(error.filename)}: {what}" if isinstance(error.filename, str | bytes) else what
            )
        case MemoryError():
            return "not enough memory for this"
        case ImportError() if "failed to map segment" in str(error):
            # Of a library, by the dynamic linker.
            return "not enough memory for this"
        case ImportError() if (absent := missing(error)) is not None:
            return str(absent)
        case RuntimeError() if str(error) == "can't start new thread":
            return "no thread can be started: there is not enough memory, or there are too many threads"
        case _:
            name = type(error).__name__
            return f"internal error: {name}: {error} (LOGREEL_TRACEBACK=1 shows where; please report it)"
