"""Commands of ``logreel carla``: the queries of the simulator's client."""

from __future__ import annotations

from logreel.formats.carla.metric_run.command import OPTIONS as METRIC_OPTIONS
from logreel.formats.carla.metric_run.command import metrics
from logreel.formats.carla.simulator.actor_list import actor_list
from logreel.formats.carla.simulator.blocked import MIN_DISTANCE, MIN_TIME, blocked
from logreel.formats.carla.simulator.collisions import collisions
from logreel.formats.carla.simulator.info import info
from logreel.formats.carla.simulator.replay_command import OPTIONS, replay
from logreel.formats.carla.simulator.wording import WORDINGS
from logreel.registry.commands import Command, Example, Option

_CORRECT = Option("correct", ("--correct",), "Without the faults of the simulator's own query.", bool)

COMMANDS = (
    Command(
        "info",
        "Show what happens, as show_recorder_file_info prints it.",
        info,
        (
            Option("show_all", ("--all",), "Also every position, light, control and so on.", bool),
            Option(
                "release",
                ("--generation",),
                "Print as the simulator did from this release on; by default as the one that recorded.",
                tuple(WORDINGS),
            ),
        ),
        (
            Example("logreel carla info town.log", "what happens, in the words of the simulator"),
            Example(
                "logreel carla info town.log --all -o town.txt", "everything that is recorded, in a file"
            ),
        ),
    ),
    Command(
        "collisions",
        "Show collisions, as show_recorder_collisions prints them. TYPE1 and TYPE2 are the kinds of the two actors: "
        "a any, h hero, v vehicle, w walker, t traffic light, o other; with --correct also s sign, n sensor.",
        collisions,
        (Option("type1", default="a"), Option("type2", default="a"), _CORRECT),
        (
            Example("logreel carla collisions town.log", "all collisions"),
            Example("logreel carla collisions town.log h w", "those of the hero with walkers"),
        ),
    ),
    Command(
        "blocked",
        "Show actors that stand still, as show_recorder_actors_blocked prints them: for MIN_TIME seconds or longer "
        "they move less than MIN_DISTANCE centimetres.",
        blocked,
        (
            Option("min_time", kind=float, default=MIN_TIME),
            Option("min_distance", kind=float, default=MIN_DISTANCE),
            _CORRECT,
        ),
        (
            Example("logreel carla blocked town.log", "actors that stand still"),
            Example("logreel carla blocked town.log 5 100", "those that move less than 1 m in 5 s"),
        ),
    ),
    Command(
        "replay",
        "Show what the simulator applies in each step of a replay, a line per step or a JSON object per line; or play "
        "the steps to a sink: Foxglove, Rerun and others.",
        replay,
        OPTIONS,
        (
            Example("logreel carla replay town.log --json", "the steps of a replay, as lines of JSON"),
            Example("logreel carla replay town.log --to foxglove", "play the steps to Foxglove"),
        ),
        plays=True,
    ),
    Command(
        "metrics",
        "Run a metric of the scenario runner: a class in a Python file, which is executed. It gets the recording as "
        "the simulator's metrics_manager.py passes it, without a server.",
        metrics,
        METRIC_OPTIONS,
        (
            Example("logreel carla metrics town.log --metric metric.py", "run the metric of a file"),
            Example("logreel carla metrics town.log --metric metric.py --json", "with the result as JSON"),
        ),
        prints=True,
    ),
    Command(
        "actors",
        "Show who is in a recording, since when, and until when.",
        actor_list,
        examples=(
            Example("logreel carla actors town.log", "a table of the actors"),
            Example("logreel carla actors town.log --json", "the same as JSON"),
        ),
    ),
)
