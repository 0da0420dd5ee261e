"""Write the seeds of all targets, or of some: ``python seeds.py FOLDER [TARGET…]`` makes FOLDER/TARGET/N."""

from __future__ import annotations

import sys
from pathlib import Path

from targets import TARGETS, seeds


def write(folder: Path, name: str) -> None:
    """Write the seeds of a target to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (folder / str(number)).write_bytes(data)


def main() -> None:
    """Write the seeds."""
    folder, *names = sys.argv[1:]
    for name in names or TARGETS:
        write(Path(folder) / name, name)


if __name__ == "__main__":
    main()
