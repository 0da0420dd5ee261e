"""``rerun-importer-logreel``: importer program that Rerun calls for every file opened in it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

#: Exit code that Rerun expects for a file that this importer cannot read.
INCOMPATIBLE = 66
#: Suffixes that Rerun reads itself; importing these would show everything twice.
_NATIVE = (".mcap", ".rrd", ".rbl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a log as a Rerun recording to standard output and return the exit code.

    arguments  words after the program name; None: ``sys.argv[1:]``

    The exit code is 66 for a file that is no log. That is decided before Rerun is imported, since this program is
    called for every file.
    """
    parser = argparse.ArgumentParser(
        "rerun-importer-logreel",
        description="Send a log to Rerun, which calls this itself.",
        allow_abbrev=False,
    )
    parser.add_argument("file")
    parser.add_argument("--application-id", default="logreel")
    parser.add_argument("--recording-id")
    parser.add_argument("--entity-path-prefix", default="")
    # Other options of Rerun do not matter here, and newer versions may pass more.
    options, _ = parser.parse_known_args(arguments)
    if options.file.lower().endswith(_NATIVE) or not os.path.isfile(options.file):
        return INCOMPATIBLE
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from logreel.errors import UnknownFormatError
    from logreel.registry.open import open_log

    try:
        with open_log(options.file) as log:
            from logreel.cli.draw import say
            from logreel.outputs.rerun import RerunTarget, stream

            place = RerunTarget(options.application_id, options.recording_id, options.entity_path_prefix)
            for text in stream(log, place):
                say(text)
    except UnknownFormatError:
        return INCOMPATIBLE
    except BaseException as error:
        from logreel.cli.exits import report

        return report(error)
    return 0
