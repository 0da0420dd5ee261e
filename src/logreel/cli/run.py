"""From an outcome to an exit code and one sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from logreel.cli.exits import report

#: Set by the scripts of ``logreel completion`` when the shell asks.
COMPLETE = "_LOGREEL_COMPLETE"


def run(args: Sequence[str]) -> int:
    """Run the verb that *args* name and give the exit code; errors become one sentence on stderr."""
    _set_up_streams()
    try:
        if COMPLETE in os.environ:
            from logreel.cli.completion import complete

            return complete(os.environ[COMPLETE], args)
        from logreel.cli.app import logreel

        # Not main(), which would end the process itself on a broken pipe, with code 1.
        with logreel.make_context("logreel", list(args) or ["--help"], obj=list(args)) as context:
            code = logreel.invoke(context)
        sys.stdout.flush()
    except BaseException as error:
        if os.environ.get("LOGREEL_TRACEBACK") and not isinstance(error, SystemExit):
            raise
        code = report(error, args)
        _let_go()
    return code if isinstance(code, int) else 0


def _let_go() -> None:
    """Drop what stdout will not take, so that nothing complains when the process ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_up_streams() -> None:
    """Let no character fail, whatever the encoding of the terminal, nor a stream that is closed."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
