"""The bench uses names that exist, also in jobs that run as text in other processes; pages say its figures."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
NAME = re.compile(r"\b(?:logreel|support)(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(r"from ((?:logreel|support)[\w.]*) import ([\w, ]+)")


def texts(script: Path) -> list[str]:
    """Return the code of the script and of the jobs in it, without comments and docstrings."""
    tree = ast.parse(script.read_text())
    found = [ast.unparse(tree)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def names(script: Path) -> set[str]:
    """Return the dotted names of logreel in the script."""
    found = set()
    for text in texts(script):
        found.update(NAME.findall(text))
        for module, imported in IMPORT.findall(text):
            found.update(f"{module}.{name.split(' as ')[0].strip()}" for name in imported.split(","))
    return found


def resolve(name: str) -> None:
    """Import what *name* means; raises ImportError or AttributeError if there is no such thing."""
    parts = name.split(".")
    value = import_module(parts[0])
    for end, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            import_module(".".join(parts[:end]))
        value = getattr(value, part)


@pytest.fixture(scope="module")
def bench() -> Any:
    """Return the function that imports a module of the bench."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module
        for name in {path.stem for path in BENCH.glob("*.py")} & sys.modules.keys():
            del sys.modules[name]


@pytest.mark.parametrize("script", sorted(BENCH.glob("*.py")), ids=lambda path: path.stem)
def test_names_in_a_bench_exist(script):
    """A module that was moved breaks a bench only when it runs, which CI never does."""
    for name in sorted(names(script)):
        resolve(name)


def test_a_name_that_does_not_exist_is_found():
    """The check itself fails for a module that was moved."""
    with pytest.raises(ImportError):
        resolve("logreel.outputs.mp4")


def test_the_code_of_each_job_is_python(bench):
    """Jobs are compiled only when they run; each group has its jobs by distinct names, and one yardstick at most."""
    groups = bench("run").all_groups(1.0, bench("measure").Run.LONG)
    assert len({group.name for group in groups}) == len(groups)
    for group in groups:
        assert len({job.name for job in group.jobs}) == len(group.jobs), group.name
        for job in group.jobs:
            assert bool(job.code) != bool(job.command), job.name
            compile(f"{job.setup}\n{job.code}", job.name, "exec")
            if job.command[:2] == (sys.executable, "-c"):
                compile(job.command[2], job.name, "exec")


def test_a_quick_run_has_every_format_and_the_main_tasks(bench):
    quick = {
        group.name.partition("-")[0] for group in bench("run").all_groups(0.1, bench("measure").Run.QUICK)
    }
    assert quick >= {
        "ladder",
        "ulog",
        "rosbag",
        "mcap",
        "bddf",
        "carla",
        "koblenz",
        "tables",
        "rewrite",
        "write",
        "view",
    }


def taken(bench, *walls):
    """Return the figures of a group with a yardstick of 1, 2 and 3 s and a job that takes *walls*."""
    measure = bench("measure")
    jobs = (measure.Job("copy", "pass"), measure.Job("open", "pass"))
    bound = measure.Bound("open takes {:.1f} x a copy", measure.ratio("open", "copy"), most=2)
    group = measure.Group("g", "A group", lambda folder: folder, jobs, (bound,))
    rows = {"copy": {"wall": [1.0, 2.0, 3.0]}, "open": {"wall": list(walls)}}
    return measure.Taken(group, size=1_000_000, rows=rows, rounds=3)


def test_ratios_are_those_of_the_same_round(bench):
    found = taken(bench, 2.0, 2.0, 6.0).as_dict()
    assert found["jobs"]["open"] == {"wall": [2.0, 2.0, 6.0], "ratio": [1.0, 2.0, 2.0]}
    assert found["bounds"] == [
        {"says": "open takes 1.0 x a copy (bound: at most 2)", "value": 1.0, "holds": True}
    ]


def test_a_broken_bound_is_a_sentence_and_a_bound_without_its_job_is_none(bench):
    one = taken(bench, 6.0, 6.0, 6.0)
    assert not one.as_dict()["bounds"][0]["holds"]
    assert "BROKEN" in bench("run").table({"g": one.as_dict()})
    del one.rows["open"]
    assert one.as_dict()["bounds"] == []


def test_worse_than_before_is_by_more_than_the_spread(bench, capsys):
    before, same, worse = (
        {"g": taken(bench, *walls).as_dict()} for walls in ((2, 4, 6), (2, 5, 6), (3, 6, 9))
    )
    compare = bench("run").compare
    assert compare(same, before) == []
    assert compare(worse, before) == ["g: open takes 3.00 x its yardstick, at least 3.00; it was 2.00"]
    assert "worse" in capsys.readouterr().out


def test_groups_of_an_earlier_run_stay_in_the_file(bench, tmp_path):
    run, path = bench("run"), tmp_path / "results.json"
    run.save(path, {"about": {"commit": "a"}, "groups": {"x": {"jobs": {"j": {"wall": [1, 2, 3]}}}, "y": {}}})
    run.save(path, {"about": {"commit": "b"}, "groups": {"y": {"rounds": 2}}})
    content = bench("json").loads(path.read_text())
    assert content["about"] == {"commit": "b"}
    assert content["groups"]["x"]["about"] == {"commit": "a"}
    assert content["groups"]["y"] == {"rounds": 2}
    assert '"wall": [1, 2, 3]' in path.read_text()


def test_a_job_that_fails_is_left_out_with_its_reason(bench, tmp_path):
    measure = bench("measure")
    log = tmp_path / "log"
    log.write_bytes(b"x")
    jobs = (
        measure.Job("good", "values['n'] = 3"),
        measure.Job("bad", "raise SystemExit('no such thing')"),
        measure.Job("absent", "pass", needs=("no_such_module",)),
        measure.Job("command", command=(sys.executable, "-c", "open('PATH').read()")),
    )
    one = measure.Taken(measure.Group("g", "A group", lambda folder: log, jobs))
    one.round(tmp_path, measure.Run.QUICK)
    assert one.rows.keys() == {"good", "command"}
    assert one.rows["good"]["n"] == [3]
    assert one.failures.keys() == {"bad"}
    assert "no such thing" in one.failures["bad"]
    assert one.missing["absent"] == "needs no_such_module"


def test_a_log_that_cannot_be_made_fails_the_jobs_of_its_group_only(bench, tmp_path):
    measure = bench("measure")

    def log(folder):
        raise LookupError("no such flight")

    one = measure.Taken(measure.Group("g", "A group", log, (measure.Job("open", "pass"),)))
    one.round(tmp_path, measure.Run.FULL)
    assert "no such flight" in one.failures["open"]
    assert one.as_dict()["jobs"] == {}
    assert one.next_round() == 0


def test_pages_and_chart_are_generated_from_the_results(bench):
    """`python bench/figures.py` fills them after a run."""
    assert [str(path.relative_to(ROOT)) for path in bench("figures").stale()] == []


def test_no_page_states_a_speed_beside_the_results(bench):
    """A comparison typed by hand stays when the code changes; decisions name the commits, and the history is dated."""
    speed = re.compile(r"\d ?(?:×|x|times) (?:faster|as fast|slower)|\d MB/s")
    place = bench("figures").PLACE
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        if page.parent.name != "decisions" and page.name != "history.md":
            assert speed.findall(place.sub("", page.read_text())) == [], page


def test_counts_of_instructions_are_compared_by_two_percent(bench):
    lines = dict(
        bench("instructions").compared({"t": {"k": 101, "m": 103, "n": 5}}, {"t": {"k": 100, "m": 100}})
    )
    assert [line.split()[-1] for line in lines] == ["+1.0%", "DIFFERS", "new"]
    assert list(lines.values()) == [False, True, False]


def test_rounds_go_on_while_there_is_time_and_something_to_run(bench):
    measure = bench("measure")
    jobs = (
        measure.Job("copy", "pass"),
        measure.Job("slow", "pass", rounds=1),
        measure.Job("open", "pass", rounds=2),
    )
    one = measure.Taken(measure.Group("g", "A group", lambda folder: folder, jobs))
    one.cost = {"copy": 1.0, "slow": 60.0, "open": 2.0}
    seconds = []
    for one.rounds in (0, 1, 2):
        seconds.append(one.next_round())
    assert seconds == [63.0, 3.0, 0.0]
