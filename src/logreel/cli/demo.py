"""``logreel demo``."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import rich_click as click

from logreel.cli import arguments, draw
from logreel.cli.help import verb

#: A short flight, which tools/demo_log.py makes.
BUNDLED = Path(__file__).with_name("flight.ulg.xz")


@verb(
    examples={
        "logreel demo": "a tour with a log that comes with logreel",
        "logreel demo --dir tour": "with its files in another folder",
    },
)
@click.option(
    "--dir",
    "folder",
    type=arguments.FOLDER,
    default="logreel-demo",
    show_default=True,
    metavar="DIR",
    help="Folder for the files of the tour.",
)
def demo(folder: str) -> int:
    """Take a guided tour with a bundled log."""
    from logreel.cli import main

    path, topic = _write_sample(Path(folder))
    name = _command()
    out = os.path.join(folder, "channels.parquet") + os.sep
    page = os.path.join(folder, "report.html")
    steps = [
        ("What is in the log?", ["info", path]),
        ("Messages of one channel, as text.", ["cat", path, "-t", topic, "-n", "3"]),
        ("What the robot said.", ["text", path]),
        ("Parameters changed in flight.", ["params", path, "--changed"]),
        ("Every channel as a table.", ["convert", path, out, *(["--force"] if os.path.exists(out) else [])]),
        (
            "Everything at a glance, on one page.",
            ["report", path, "-o", page, *(["--force"] if os.path.exists(page) else [])],
        ),
    ]
    for title, command in steps:
        draw.echo()
        sys.stdout.write(draw.emphasis(f"# {title}") + "\n")
        draw.echo(f"$ {name} {shlex.join(command)}")
        sys.stdout.flush()
        code = main(command)
        if code:
            return code
    draw.echo()
    sys.stdout.write(draw.emphasis("# See it") + "\n")
    draw.echo(f"Open {Path(page).resolve().as_uri()} in a browser, or look around in the viewer:")
    draw.echo(f"$ {name} view {shlex.quote(path)}")
    draw.echo()
    sys.stdout.write(draw.emphasis("# What to try next") + "\n")
    draw.echo(f"$ {name} stats {shlex.quote(path)} --fields")
    draw.echo(f"$ {name} cat {shlex.quote(path)} -t {topic} --format csv --utc -S +10s -E +12s")
    draw.echo(f"$ {name} --help")
    draw.echo(f'>>> import logreel; logreel.open("{path}")["{topic}"].to_arrow()')
    if name != "logreel":
        bin_folder = Path(sys.executable).parent
        draw.echo()
        sys.stdout.write(
            draw.emphasis(f"# {name} is the command; to have it as logreel, in every folder") + "\n"
        )
        draw.echo(f"$ . {shlex.quote(str(bin_folder / 'activate'))}")
    return 0


def _command() -> str:
    """Return how to call this program in this folder: by its name if on the PATH, else the launcher or full path."""
    own = Path(sys.executable).with_name("logreel")
    found = shutil.which("logreel")
    if not own.exists() or (found is not None and os.path.realpath(found) == os.path.realpath(own)):
        return "logreel"
    if os.access("logreel", os.X_OK) and os.path.isfile("logreel"):
        return "./logreel"
    return shlex.quote(str(own))


def _write_sample(folder: Path) -> tuple[str, str]:
    """Write the bundled log unless it exists; return its path and the channel with most messages."""
    import lzma

    from logreel.outputs.files import new_file
    from logreel.registry.open import open_log

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / BUNDLED.stem
    data = lzma.decompress(BUNDLED.read_bytes())
    if not (path.exists() and path.read_bytes() == data):
        with new_file(path) as out:
            out.write(data)
    with open_log(path) as log:
        return str(path), max(log.match(None), key=len).topic
