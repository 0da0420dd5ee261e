"""``logreel tf``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.meaning.frames import FrameLink
    from logreel.meaning.transforms import DrawnJoint, Missing, RigidTransforms, Transforms

FORMS = ("text", "json", "urdf", "dot")
#: Marks of findings, as in ``logreel summary``.
MARKS = {"error": "!!", "warn": "!", "note": ""}
#: Rows of a lookup with --every, at most.
MOST = 1_000_000


@verb(
    examples={
        "logreel tf drive.bag": "the tree of frames, and what is wrong with it",
        "logreel tf drive.bag --from base_footprint --to map --at +2s": "where the robot was after 2 s",
    },
)
@common.logs
@click.option(
    "--from", "source", metavar="FRAME", help="Look up the transform of points given in this frame …"
)
@click.option("--to", "target", metavar="FRAME", help="… to this one: the target_frame of tf2.")
@click.option(
    "--at",
    "times",
    multiple=True,
    metavar="TIME",
    help=f"Time of the lookup, or of the joints of URDF; may be repeated: {common.TIMES}",
)
@click.option("--every", metavar="LENGTH", help="Look up at regular times of the interval: 0.5s, 20ms.")
@click.option(
    "--missing",
    type=click.Choice(("error", "nan", "hold")),
    default="error",
    show_default=True,
    help="Where the transform is not known: fail, leave it empty, or take the nearest one.",
)
@click.option(
    "--max-gap", metavar="LENGTH", help="Do not interpolate between transforms further apart: 0.5s."
)
@click.option(
    "--fixed", metavar="FRAME", help="Draw the tree from this frame, and only what it is connected with."
)
@click.option("--poses", is_flag=True, help="Use poses of vehicles and actors even if there are transforms.")
@click.option(
    "--log-time",
    is_flag=True,
    help="A transform is valid when it was logged, not at the stamp that it contains.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="Form of the output; by default that of the suffix of OUT (.urdf, .json, .dot), else text.",
)
@common.start
@common.end
@common.segment
@common.decrypt
@common.msgdef
@paths.text_output
@common.as_json
def tf(
    logs: paths.Logs,
    source: str | None,
    target: str | None,
    times: tuple[str, ...],
    every: str | None,
    missing: Missing,
    max_gap: str | None,
    fixed: str | None,
    poses: bool,
    log_time: bool,
    form: str | None,
    start: str | None,
    end: str | None,
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Show the tree of coordinate frames with its coverage in time, or look up transforms between two frames.

    Links whose transforms hold for all times are static. With --from and --to, position, rotation and angles at the
    given times are shown, interpolated as tf2 does; without --at, at the latest time that all links cover. What is
    wrong with the tree is marked with ! or !!: several roots or parents, interruptions, jumps.
    """
    from logreel.errors import UsageError
    from logreel.meaning.transforms import transforms

    chosen = _form(form, as_json)
    if (source is None) != (target is None):
        raise UsageError(
            "--from and --to belong together: logreel tf FILE --from base_link --to map --at +12s"
        )
    if source is None and (every or max_gap or missing != "error"):
        raise UsageError("--every, --missing and --max-gap are for lookups: give --from and --to, too")
    if source is not None and (fixed or chosen in ("urdf", "dot")):
        raise UsageError("--fixed and the forms urdf and dot are for the tree: leave out --from and --to")
    if source is None and len(times) > 1:
        raise UsageError("one --at is enough for the joints of the tree; lookups take several")
    if every and times:
        raise UsageError("give --at or --every")
    if chosen in ("urdf", "dot"):
        logs.only(f"{chosen} describes one log")

    def answer(log: Log) -> int:
        found = transforms(
            log, start=start, end=end, poses=True if poses else None, stamps=False if log_time else None
        )
        if source is not None and target is not None:
            at = _regular(log, every, start, end) if every else list(times) or None
            known = found.lookup(target, source, at, missing=missing, max_gap=max_gap)
            show_lookup(log, found, known, chosen, logs.several)
        else:
            show_tree(log, found, fixed, times[0] if times else None, chosen, logs.several)
        return draw.finish(log)

    return common.each_log(logs, answer, chosen == "text", definitions=msgdef, segment=segment)


def _form(form: str | None, as_json: bool) -> str:
    from logreel.errors import UsageError

    context = click.get_current_context(silent=True)
    out = (context.params.get("out") if context else None) or ""
    suffix = os.path.splitext(out)[1].lower().lstrip(".")
    if form and as_json and form != "json":
        raise UsageError(f"--json and --format {form}: leave out one of them")
    return (
        "json"
        if as_json
        else form or {"gv": "dot", "xml": "urdf"}.get(suffix, suffix if suffix in FORMS else "text")
    )


def _regular(log: Log, every: str, start: str | None, end: str | None) -> Any:
    """Return int64[n] ns from the start of the interval to its end."""
    import numpy as np

    from logreel.errors import UsageError
    from logreel.log.times import duration_ns, interval

    step, (first, last) = duration_ns(every), interval(log, start, end)
    low, high = log.start if first is None else first, log.end if last is None else last
    if step <= 0 or low is None or high is None:
        raise UsageError(f"--every {every}: give a length of time such as 0.5s")
    if (high - low) // step >= MOST:
        raise UsageError(
            f"--every {every} gives more than {MOST} rows: take a longer one, or an interval with -S and -E"
        )
    return np.arange(low, high + 1, step, dtype=np.int64)


def show_lookup(log: Log, frames: Transforms, found: RigidTransforms, form: str, several: bool) -> None:
    """Print the transforms of a lookup."""
    import numpy as np

    if form == "json":
        draw.echo_answer(log, several, **found.as_dict(), chain=frames.chain(found.target, found.source))
        return
    draw.echo_head(f"{found.source} in {found.target}")
    draw.echo(f"by {' → '.join(frames.chain(found.target, found.source))}")
    rows = []
    angles = np.degrees(np.atleast_2d(found.euler))
    places, turns = np.atleast_2d(found.translation), np.atleast_2d(found.rotation)
    for n, time in enumerate(np.atleast_1d(found.time).tolist()):
        numbers = [*(f"{v + 0.0:.4f}" for v in places[n]), *(f"{v + 0.0:.5f}" for v in turns[n])]
        numbers += [f"{v + 0.0:.2f}" for v in angles[n]]
        rows.append((since(log, time), *(numbers if np.isfinite(places[n]).all() else [""] * 10)))
    draw.table(
        ("time", "x m", "y m", "z m", "qx", "qy", "qz", "qw", "roll °", "pitch °", "yaw °"),
        rows,
        right=range(11),
    )


def show_tree(
    log: Log, frames: Transforms, fixed: str | None, time: str | None, form: str, several: bool
) -> None:
    """Print the tree of frames."""
    from logreel.meaning.transforms import dot, joints, urdf

    if form == "json":
        drawn = [one.as_dict() for one in joints(frames, fixed, time)]
        draw.echo_answer(log, several, **frames.tree.as_dict(), joints=drawn)
    elif form == "urdf":
        _write(urdf(frames, os.path.splitext(os.path.basename(log.name))[0] or "robot", fixed, time))
    elif form == "dot":
        _write(dot(frames, fixed))
    elif not frames.frames:
        draw.echo("no transforms between frames")
    else:
        _draw(log, frames, joints(frames, fixed, time), fixed)


def _write(text: str) -> None:
    for line in text.splitlines():
        draw.echo(line)


def _draw(log: Log, frames: Transforms, found: list[DrawnJoint], fixed: str | None) -> None:
    rows: list[tuple[str, ...]] = []
    roots = [fixed.lstrip("/")] if fixed is not None else frames.tree.roots
    open_at: list[bool] = []
    for n, one in enumerate(found):
        if one.depth == 1 and one.upper not in [row[0] for row in rows]:
            rows.append((one.upper, *[""] * 5))
        last = next((later.depth < one.depth for later in found[n + 1 :] if later.depth <= one.depth), True)
        open_at[one.depth - 1 :] = [not last]
        lines = "".join("│  " if is_open else "   " for is_open in open_at[:-1])
        rows.append((f"{lines}{'└─ ' if last else '├─ '}{one.lower}", *_cells(log, one.link, one.turned)))
    rows += [(root, *[""] * 5) for root in roots if root not in [row[0] for row in rows]]
    draw.table(("frame", "link", "rate", "messages", "known", "channel"), rows, right=(2, 3))
    for finding in frames.tree.findings:
        when = f" (first at {since(log, finding.time_ns)})" if finding.time_ns is not None else ""
        draw.echo(f"{MARKS[finding.severity]:<2}{finding.text}{when}")


def _cells(log: Log, link: FrameLink, turned: bool) -> tuple[str, ...]:
    kind = ("static" if link.static else "moving") + (" (parent)" if turned else "")
    if link.static:
        known = "always"
    else:
        first, last = link.intervals[0][0], link.intervals[-1][1]
        gaps = len(link.intervals) - 1
        known = f"{since(log, first)} to {since(log, last)}" + (
            f", {gaps} gaps" if gaps > 1 else ", 1 gap" * gaps
        )
    return kind, draw.rate_text(link.rate), str(link.messages), known, ", ".join(link.topics)


def since(log: Log, time: int) -> str:
    """Return a time as -S and --at take it: seconds after the start of the log."""
    from logreel.log.times import seconds_text

    ns = time - (log.start or 0)
    return f"{'-' if ns < 0 else '+'}{seconds_text(abs(ns), 3)}s"
