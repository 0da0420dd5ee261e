"""The command line program ``logreel``; nobody but users imports it.

``main`` runs one command line, ``app`` has the command group, ``exits`` codes and words of errors. The verbs stand in a
module for each group (``read``, ``contents``, ``check``, ``query``, ``show``, ``play``, ``convert``, ``record``,
``rewrite``, ``fleet``, ``formats``), are built from the objects of ``options`` and ``inputs``, and show results with
``draw``. They import the library when they run, so that commands start fast; help is printed from ``static/help``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from logreel._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import click

#: Environment variable that the scripts of ``logreel completion`` set.
COMPLETE = "_LOGREEL_COMPLETE"
#: Columns of the pages of help: those of pipes and of many terminals, and the most that are used.
PAGE_WIDTHS = (80, 110)
#: Not imported for verbs that read no file.
GUARDS = "logreel.io.source"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    arguments  words after the program name; None: ``sys.argv[1:]``
    """
    args = list(sys.argv[1:] if arguments is None else arguments)
    if args == ["--version"]:
        # Fast, without loading the command line library.
        sys.stdout.write(f"logreel {__version__}\n")
        return 0
    import gc

    if arguments is None:
        from logreel.io.imports import import_arrow_without_pandas

        import_arrow_without_pandas()
    # Imports make many objects and no garbage.
    gc.set_threshold(10_000)
    try:
        from logreel.cli.signals import StopSignals

        with StopSignals():
            return run(args)
    except KeyboardInterrupt:
        # Ctrl-C before run has begun, or during its error report.
        sys.stderr.write("logreel: interrupted\n")
        return 130
    except SystemExit as ended:
        # SIGTERM at such a moment.
        return ended.code if isinstance(ended.code, int) else 1
    except MemoryError:
        # There was no room for the module that reports errors either.
        sys.stderr.write("logreel: not enough memory for this\n")
        return 1


def run(args: Sequence[str]) -> int:
    """Run the verb named by *args* and return the exit code; errors are reported as one sentence on stderr."""
    from logreel.cli.signals import current

    _set_up_streams()
    guards = sys.modules.get(GUARDS)
    since = 0 if guards is None else guards.next_serial()
    signals = current()
    context = None
    try:
        if COMPLETE in os.environ:
            from logreel.cli.completion import complete

            return complete(os.environ[COMPLETE], args)
        if (page := help_page(args)) is not None:
            sys.stdout.write(page)
            sys.stdout.flush()
            return 0
        from logreel.cli.draw import say
        from logreel.errors import listeners

        listeners.append(say)
        from logreel.cli.app import logreel

        # Not main(), which exits the process with code 1 on a broken pipe.
        context = logreel.make_context("logreel", list(args) or ["--help"], obj=list(args))
        with context:
            code = logreel.invoke(context)
        sys.stdout.flush()
        _check_files(since)
    except BaseException as failed:
        if signals.received:
            # Whatever came of its exception, in an import for example.
            error = signals.error()
        else:
            error = failed if isinstance(failed, KeyboardInterrupt) else _changed_file(since) or failed
        if os.environ.get("LOGREEL_TRACEBACK") and not isinstance(error, SystemExit):
            raise
        from logreel.cli.exits import report

        code = report(error, args, None if context is None else _innermost(context))
        _discard_output()
    finally:
        if "logreel.cli.draw" in sys.modules:
            _stop_listening()
    return code if isinstance(code, int) else 0


def _stop_listening() -> None:
    """Print sentences of the library no more."""
    from logreel.cli.draw import say
    from logreel.errors import listeners

    if say in listeners:
        listeners.remove(say)


def help_page(args: Sequence[str]) -> str | None:
    """Return the help that *args* ask for as ``tools/lay_out_help.py`` laid it out; None: it must be laid out now.

    Laying out takes half a second. There are pages for the usual widths; commands of other packages, and variables that
    change colours, are on none of them.
    """
    path = list(args[:-1])
    if (args and args[-1] not in ("-h", "--help")) or not all(word.isalnum() for word in path):
        return None
    is_terminal = sys.stdout.isatty()
    width = _width(is_terminal)
    odd = {
        "FORCE_COLOR",
        "GITHUB_ACTIONS",
        "PY_COLORS",
        "RICH_CLICK_THEME",
        "TERMINAL_WIDTH",
        "TTY_COMPATIBLE",
    }
    odd |= {"NO_COLOR", "TTY_INTERACTIVE"} if is_terminal else set()
    if (
        not odd.isdisjoint(os.environ)
        or (is_terminal and os.environ.get("TERM", "").lower() in ("dumb", "unknown"))
        or (width != PAGE_WIDTHS[0] and width < PAGE_WIDTHS[1])
        or (sys.stdout.encoding or "").lower() != "utf-8"
        or sys.platform == "win32"
    ):
        return None
    folder = os.path.join(os.path.dirname(__file__), "static", "help")
    try:
        with open(os.path.join(folder, ".".join(["logreel", *path, "txt"])), encoding="utf-8") as file:
            text = file.read().split("\f\n")[width >= PAGE_WIDTHS[1]]
    except OSError:
        return None
    from logreel.registry import entry_points_seen

    added = entry_points_seen()
    if added is None or (not path and "logreel.formats" in added and _formats_add_commands()):
        return None
    formats = {name.partition(".")[0] for name in added.get("logreel.commands", ())}
    if len(path) == 1 and path[0] in formats:
        return None
    if not path and not all(os.path.exists(os.path.join(folder, f"logreel.{name}.txt")) for name in formats):
        return None
    if is_terminal:
        return text
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _formats_add_commands() -> bool:
    """Return whether the list of all commands must be laid out for formats of other packages, or tell a broken one."""
    import warnings

    from logreel.registry.registry import FORMATS

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return any(fmt.commands is not None for fmt in FORMATS.added().values())
        except RuntimeWarning:
            return True


def _width(is_terminal: bool) -> int:
    """Return the columns for help, as rich counts them; 0: those of the terminal differ."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        return int(columns)
    widths = {}
    for number in (0, 1, 2):
        with suppress(ValueError, OSError):
            widths[number] = os.get_terminal_size(number).columns
    first = next(iter(widths.values()), 0) or 80
    return first if not is_terminal or widths.get(1) == first else 0


def _innermost(context: click.Context) -> click.Context | None:
    """Return the context of the command that ran."""
    from logreel.cli.help import CONTEXT

    command: click.Context | None = context.meta.get(CONTEXT)
    return command


def _changed_file(since: int) -> BaseException | None:
    """Return the error for a file that changed while it was read; other errors follow from it."""
    guards = sys.modules.get(GUARDS)
    return next(iter(guards.changed_files(since)), None) if guards is not None else None


def _check_files(since: int) -> None:
    """Raise the error for a file that changed while it was read."""
    if (error := _changed_file(since)) is not None:
        raise error


def _discard_output() -> None:
    """Discard buffered output that stdout does not accept, so that the exit of the process raises no error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_up_streams() -> None:
    """Escape characters that the encoding of the terminal lacks, and replace closed streams by the null device."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
