"""Running one command line, with errors reported as one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logreel.cli.draw import say
from logreel.cli.signals import current
from logreel.errors import listeners

if TYPE_CHECKING:
    import rich_click as click

#: Environment variable that the scripts of ``logreel completion`` set.
COMPLETE = "_LOGREEL_COMPLETE"
#: Not imported for verbs that read no file.
GUARDS = "logreel.io.source"


def run(args: Sequence[str]) -> int:
    """Run the verb named by *args* and return the exit code; errors are reported as one sentence on stderr."""
    _set_up_streams()
    guards = sys.modules.get(GUARDS)
    since = 0 if guards is None else guards.next_serial()
    listeners.append(say)
    signals = current()
    context = None
    try:
        if COMPLETE in os.environ:
            from logreel.cli.completion import complete

            return complete(os.environ[COMPLETE], args)
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
        listeners.remove(say)
    return code if isinstance(code, int) else 0


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
