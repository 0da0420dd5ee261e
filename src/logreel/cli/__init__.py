"""The command line program ``logreel``; nobody but users imports it.

``run`` runs one command line, ``app`` has the command group, ``exits`` codes and words of errors. The verbs stand in a
module for each group (``read``, ``contents``, ``check``, ``query``, ``show``, ``play``, ``convert``, ``record``,
``rewrite``, ``fleet``, ``formats``), are built from the objects of ``options`` and ``inputs``, and show results with
``draw``. They import the library when they run, so that commands start fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from logreel._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    arguments  words after the program name; None: ``sys.argv[1:]``
    """
    args = list(sys.argv[1:] if arguments is None else arguments)
    if args == ["--version"]:
        # Fast, without loading the command line library.
        sys.stdout.write(f"logreel {__version__}\n")
        return 0
    # OpenBLAS starts threads at import, which costs more than a small command; none of them is used.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from logreel.cli.signals import StopSignals

        with StopSignals():
            from logreel.cli.run import run

            return run(args)
    except KeyboardInterrupt:
        # Ctrl-C before run was imported, or during its error report.
        sys.stderr.write("logreel: interrupted\n")
        return 130
    except SystemExit as ended:
        # SIGTERM at such a moment.
        return ended.code if isinstance(ended.code, int) else 1
