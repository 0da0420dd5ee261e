"""What can be added to logreel, and the opening of logs with it.

``plugins.Registry`` is the registry of formats, definition languages, lenses, detectors, outputs, sinks and sources, of
logreel and of other packages. ``format.Format`` describes a log format; ``registry`` finds that of a file, ``open``
opens it, ``open_parts`` several files as one log, and ``index_cache`` keeps what was read for the next time.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logreel.limits import FixedLimit


def entry_points_seen() -> dict[str, set[str]] | None:
    """Return the names of entry points for logreel by group, of packages in the folders of ``sys.path``.

    Reads their files, which takes a tenth of the time of importing ``importlib.metadata`` and asking it. None: only
    that can tell, since packages come from elsewhere, or it is loaded already.
    """
    others = [each for each in sys.meta_path if getattr(each, "__name__", "") != "PathFinder"]
    if "importlib.metadata" in sys.modules or any(hasattr(each, "find_distributions") for each in others):
        return None
    names: dict[str, set[str]] = {}
    for folder in dict.fromkeys(sys.path):
        try:
            packages = os.listdir(folder or ".")
        except FileNotFoundError:
            continue
        except OSError:
            # An archive.
            return None
        for package in packages:
            if package.lower().endswith((".dist-info", ".egg-info", ".egg", "egg-info")):
                inner = "EGG-INFO" if package.lower().endswith(".egg") else ""
                _read_entry_points(os.path.join(folder, package, inner, "entry_points.txt"), names)
    return names


def _read_entry_points(path: str, names: dict[str, set[str]]) -> None:
    """Add the names of a file of entry points to *names*."""
    try:
        # The name ``open`` is that of a module of this package.
        with io.open(path, encoding="utf-8", errors="replace") as file:  # noqa: UP020
            text = file.read()
    except OSError:
        return
    group = ""
    for line in text.splitlines() if "logreel." in text else ():
        if line.strip()[:1] == "[":
            group = line.strip().strip("[]").strip()
        elif group.startswith("logreel.") and "=" in line:
            names.setdefault(group, set()).add(line.partition("=")[0].strip())


def fixed_limits() -> Iterator[FixedLimit]:
    """Yield the bounds of this room that no option raises."""
    from logreel.limits import FixedLimit
    from logreel.registry import index_cache

    yield FixedLimit(
        "bytes of an index file, in parts of its log",
        index_cache.MAX_TIMES,
        "a sparse file costs nothing to make, reading it does",
        "the index file is ignored",
    )
