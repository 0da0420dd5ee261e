"""``rerun-importer-logreel``, which Rerun calls for every file that somebody opens in it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

#: What Rerun expects for a file that is none of ours.
INCOMPATIBLE = 66
#: What Rerun reads by itself: it would show everything twice.
_ITS_OWN = (".mcap", ".rrd", ".rbl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the log that is named as a recording of Rerun to standard output; gives the exit code.

    arguments  None: those of the process

    The code is 66 for a file that is no log, which is told before Rerun is imported: Rerun asks for every file.
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
    # Times and what is opened already do not matter to a log; other options may come with other versions.
    given, _ = parser.parse_known_args(arguments)
    if given.file.lower().endswith(_ITS_OWN) or not os.path.isfile(given.file):
        return INCOMPATIBLE
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from logreel.errors import UnknownFormatError
    from logreel.registry.open import open_log

    try:
        with open_log(given.file) as log:
            from logreel.cli.draw import say
            from logreel.outputs.rerun.rrd import Place, stream

            place = Place(given.application_id, given.recording_id, given.entity_path_prefix)
            for text in stream(log, place):
                say(text)
    except UnknownFormatError:
        return INCOMPATIBLE
    except BaseException as error:
        from logreel.cli.exits import report

        return report(error)
    return 0
