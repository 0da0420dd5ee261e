"""``logreel dataset``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.outputs.dataset import DatasetWritten


@verb(
    examples={
        "logreel dataset drive.bag -o lane --spec lane.toml --to lerobot": "episodes for LeRobot, with videos",
        "logreel dataset logs/ -o flights --spec hover.toml --to zarr": "a replay buffer of all logs in a folder",
    },
)
@click.argument("files", metavar="LOGS…", nargs=-1, required=True, type=arguments.FILE)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=arguments.FOLDER,
    help="Folder of the dataset.",
)
@click.option(
    "--spec",
    metavar="FILE",
    required=True,
    type=arguments.FILE,
    help="TOML file that says what an episode is, and which features it has.",
)
@click.option(
    "--to",
    type=click.Choice(["lerobot", "zarr", "hdf5", "lance"]),
    default="lerobot",
    show_default=True,
    help="Kind of dataset.",
)
@common.decrypt
@common.msgdef
@common.as_json
def dataset(
    files: tuple[str, ...], out: str, spec: str, to: str, decrypt: bool, msgdef: Definitions, as_json: bool
) -> int:
    """Write training data: episodes with features at a fixed rate, and how far in time each is from its messages.

    The same command with more logs, changed logs or a changed specification rewrites only what has changed; one that
    was interrupted is continued. Logs that cannot be used are left out (exit code 3).
    """
    from logreel.outputs.dataset import dataset as write
    from logreel.registry.log_files import expand

    with draw.progress(out) as progress:
        done = write(expand(files), out, spec, to=to, progress=progress, definitions=msgdef, decrypt=decrypt)
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        _show(done)
    from logreel.cli.exits import LOST

    return LOST if done.skipped else 0


def _show(done: DatasetWritten) -> None:
    """Print one line for each feature with its error in time, on stdout; what is left out on stderr."""
    from logreel.log.times import duration_text
    from logreel.ops.inspect.lens_sections import counted

    again = f", {done.reused} as before" if done.reused else ""
    episodes = counted(len(done.episodes), "episode")
    draw.echo(f"{done.path}: {episodes} with {done.frames} frames for {done.to}{again}")
    rows, frames = [], [one["frames"] for one in done.episodes]
    for name in done.episodes[0]["sync"]:
        every = [one["sync"][name] for one in done.episodes]
        mean = sum(one["mean_ns"] * n for one, n in zip(every, frames, strict=True)) / done.frames
        worst = max(one["max_ns"] for one in every)
        ends = [duration_text(round(one)) for one in (mean, worst, every[0]["bound_ns"])]
        rows.append([name, every[0]["method"], *ends])
    draw.table(["feature", "method", "mean error", "largest", "bound"], rows, right=[2, 3, 4], indent=2)
    draw.show_notes([*done.skipped, *done.notes])
