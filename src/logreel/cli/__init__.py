"""The command ``logreel``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from logreel._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code.

    arguments  None: those of the process
    """
    args = list(sys.argv[1:] if arguments is None else arguments)
    if args == ["--version"]:
        # Asked for by scripts and by people in a hurry: no reason to load a command line library.
        sys.stdout.write(f"logreel {__version__}\n")
        return 0
    # The linear algebra library below numpy starts threads that cost more than a whole small command; none is used.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from logreel.cli.run import run

        return run(args)
    except KeyboardInterrupt:
        # Pressed before run was there to say it, or while it did.
        sys.stderr.write("logreel: interrupted\n")
        return 130
