"""Check all that a power failure may leave of files. Run as ``python crash_states.py NAMES SUBSETS MOST SEED``.

NAMES are formats, or some of JOBS below, separated by commas. The process is started with the library of
system_calls.c. Each job runs once; its calls of the system are recorded. Then every state that a disk may have after
each of the calls (crash_disk.py) is put into a folder, and read: nothing, everything, every single omission, and
SUBSETS random ones after each call. MOST limits the number of states of each job, 0: no limit. Prints the number of
states by job as JSON; ends with failures.

What must hold in every state:

* Messages that ``flush(sync=True)`` has confirmed are in the log or in its unfinished file, which opens and can be
  recovered.
* A file with a final name is the whole old one or the whole new one; so is a folder that appears as one.
* After the end of a job, the new file is there whatever was not synced.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import numpy as np  # noqa: E402
from killing import SHM, Replay, Simple, content_of, wrong  # noqa: E402

import logreel  # noqa: E402
from logreel.cli import main as command  # noqa: E402
from logreel.errors import LogError, UnknownFormatError  # noqa: E402
from logreel.io.part_files import existing_parts  # noqa: E402
from logreel.ops.record.parts import Split, SplitWriter  # noqa: E402
from logreel.outputs.dataset.episode import EpisodeRecords  # noqa: E402
from logreel.registry import index_cache  # noqa: E402
from logreel.registry.registry import INDEX_SUFFIX  # noqa: E402
from support.formats import builtin_formats  # noqa: E402
from support.harness.crash_disk import Disk, put  # noqa: E402
from support.harness.faults import Inline  # noqa: E402
from support.harness.system_calls import Calls, Op, read_events, with_unseen_renames  # noqa: E402

#: Messages of a log, and the number between two flushes.
MESSAGES, FLUSHED = 60, 7
#: Parts of a log that is split.
PARTS = 4
#: Levels of marks: messages are in the file, are on the disk; the job is done.
WRITTEN, SYNCED, DONE = range(3)
#: Returns what is wrong in a folder after a mark of this number and level; empty if nothing is.
Judge = Callable[[Path, int, bool], str]


@dataclass
class Job:
    """Something that writes.

    run      called in the folder ``prepare`` made, with the marker of confirmed messages
    prepare  fills the folder before
    judge    None: files and folders are those of before or of the end
    """

    run: Callable[[Path, Callable[[int], None]], None]
    prepare: Callable[[Path], None] = lambda folder: None
    judge: Judge | None = None
    #: Files of a folder appear one by one.
    single: bool = False


def confirmed(
    w: logreel.Writer | SplitWriter,
    content: Simple | Replay,
    mark: Callable[[int], None],
    first: int,
    last: int,
) -> None:
    """Write messages; confirm some by a sync."""
    for n in range(first, last):
        content.write(w, n)
        if n % FLUSHED == FLUSHED - 1:
            w.flush(sync=n % (2 * FLUSHED) == FLUSHED - 1)
            if n % (2 * FLUSHED) == FLUSHED - 1:
                mark(n + 1)


def record(
    path: Path, name: str, content: Simple | Replay, mark: Callable[[int], None], **options: Any
) -> None:
    with logreel.create(path, format=name, flush_every=None, **options) as w:
        content.begin(w)
        confirmed(w, content, mark, 0, count_of(content))


def count_of(content: Simple | Replay) -> int:
    return min(MESSAGES, content.most)


def judge_recording(
    name: str, content: Simple | Replay, most: int, old: bytes | None, folder: Path, due: int, is_done: bool
) -> str:
    """Return what is wrong with a recording of *most* messages, of which *due* were confirmed."""
    path = folder / f"x{builtin_formats()[name].suffixes[0]}"
    active = Path(f"{path}.active")
    data = path.read_bytes() if path.exists() else None
    if data is not None and data != old:
        log = logreel.open(data)
        if log.problems:
            return f"the new file has problems: {log.problems[:1]}"
        if content.found(log) != content.due(most):
            return "the new file has not all messages"
        return ""
    if is_done:
        return "the new file is missing"
    if old is not None and data is None:
        return "the old file is gone"
    if not due:
        return readable(active) if active.exists() else ""
    if not active.exists():
        return f"{due} confirmed messages are gone: there is no file"
    return wrong(active.read_bytes(), content.due(due), content, folder / f"saved{path.suffix}")


def readable(path: Path) -> str:
    """Return what is wrong if reading raises another error than those of logreel."""
    try:
        for message in logreel.open(path).messages():
            bytes(message.data)
    except LogError:
        pass
    return ""


def record_split(path: Path, name: str, content: Simple | Replay, mark: Callable[[int], None]) -> None:
    times = [n * 10**6 for n in range(MESSAGES)]
    if isinstance(content, Replay):
        times = [content.message(n)[1] for n in range(count_of(content))]
    split = Split(duration=max(1, (max(times) - min(times)) // PARTS))

    def make(part: str) -> logreel.Writer:
        return logreel.create(part, format=name, flush_every=None)

    w = SplitWriter(str(path), builtin_formats()[name], make, split, force=False)
    content.begin(w)
    confirmed(w, content, mark, 0, count_of(content))
    w.close()


def judge_parts(name: str, content: Simple | Replay, path: str, folder: Path, due: int, is_done: bool) -> str:
    """Return what is wrong with the parts of a log, of which *due* messages were confirmed."""
    found = content.due(0)
    for part in existing_parts(str(folder / path), builtin_formats()[name].suffixes):
        is_final = not part.endswith(".active")
        if not is_final and (is_done or Path(part.removesuffix(".active")).exists()):
            if is_done:
                return f"{Path(part).name} is left"
            continue
        try:
            log = logreel.open(part)
        except UnknownFormatError:
            if is_final:
                raise
            continue
        if is_final and log.problems:
            return f"{Path(part).name} has problems: {log.problems[:1]}"
        found += content.found(log)
    missing = content.due(count_of(content) if is_done else due) - found
    return f"{missing.total()} of {due} confirmed messages are gone" if missing else ""


def old_log(path: Path, name: str, content: Simple | Replay, first: int = 0, last: int = 20) -> None:
    with logreel.create(path, format=name) as w:
        content.begin(w)
        for n in range(first, last):
            content.write(w, n)


def cli(folder: Path, mark: Callable[[int], None], *args: str, codes: tuple[int, ...] = (0, 3)) -> None:
    """Run a command in *folder*."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = command([one.format(folder=folder) for one in args])
    if code not in codes:
        raise RuntimeError(f"logreel {' '.join(args)}: exit code {code}: {said.getvalue()}")


def format_jobs(name: str, scratch: Path) -> dict[str, Job]:
    """Return what can be written in one format."""
    content = content_of(name, scratch)
    suffix = builtin_formats()[name].suffixes[0]
    most, half = count_of(content), count_of(content) // 2
    x = f"x{suffix}"
    base, broken = scratch / f"base{suffix}", scratch / f"broken{suffix}"
    old_log(base, name, content, 0, half)
    broken.write_bytes(base.read_bytes()[: base.stat().st_size * 2 // 3])
    recording = partial(judge_recording, name, content)

    def with_files(*names: tuple[Path, str]) -> Callable[[Path], None]:
        def prepare(folder: Path) -> None:
            for source, to in names:
                shutil.copy(source, folder / to)

        return prepare

    def append(folder: Path, mark: Callable[[int], None]) -> None:
        with logreel.create(folder / x, mode="a", format=name, flush_every=None) as w:
            content.begin(w)
            confirmed(w, content, mark, half, most)

    old = base.read_bytes()
    # A second log for files that are replaced, and an unfinished one.
    other = scratch / f"other{suffix}"
    old_log(other, name, content, 0, max(1, half // 2))
    jobs = {
        "write": Job(lambda f, m: record(f / x, name, content, m), judge=partial(recording, most, None)),
        "write --force": Job(
            lambda f, m: record(f / x, name, content, m, force=True),
            with_files((base, x)),
            partial(recording, most, old),
        ),
        "record --split": Job(
            lambda f, m: record_split(f / x, name, content, m), judge=partial(judge_parts, name, content, x)
        ),
        "append": Job(append, with_files((base, x)), partial(recording, most, old)),
        "recover": Job(
            lambda f, m: cli(f, m, "recover", f"{{folder}}/in{suffix}", "-o", f"{{folder}}/{x}"),
            with_files((broken, f"in{suffix}")),
        ),
        "recover active": Job(
            lambda f, m: cli(f, m, "recover", f"{{folder}}/{x}.active"), with_files((broken, f"{x}.active"))
        ),
        "slice --force": Job(
            lambda f, m: cli(
                f, m, "slice", f"{{folder}}/in{suffix}", "-o", f"{{folder}}/{x}", "--force", "-E", "+0.01s"
            ),
            with_files((base, f"in{suffix}"), (other, x)),
        ),
        "convert": Job(
            lambda f, m: cli(f, m, "convert", f"{{folder}}/in{suffix}", "{folder}/out.mcap"),
            with_files((base, f"in{suffix}")),
        ),
        "index": Job(
            lambda f, m: cli(f, m, "index", f"{{folder}}/{x}"),
            with_files((base, x)),
            partial(judge_sidecar, x, old, content.found(logreel.open(old)), content),
        ),
    }
    if builtin_formats()[name].append is None:
        del jobs["append"]
    try:
        index_cache.write(str(base), out=scratch / "index")
    except LogError:
        # This format keeps no index.
        del jobs["index"]
    return jobs


def judge_sidecar(
    name: str, old: bytes, due: Any, content: Simple | Replay, folder: Path, count: int, is_done: bool
) -> str:
    """Return what is wrong with a log that has a sidecar, whole or not."""
    path = folder / name
    if path.read_bytes() != old:
        return "the log has changed"
    if content.found(logreel.open(path)) != due:
        return "with the sidecar there are other messages"
    if is_done and not Path(f"{path}{INDEX_SUFFIX}").exists():
        return "the sidecar is missing"
    return ""


def table_jobs(scratch: Path) -> dict[str, Job]:
    """Return outputs that are no logs."""
    flight = scratch / "flight.ulg"
    old_log(flight, "ulog", Simple())

    def job(*args: str, again: bool = False, **options: Any) -> Job:
        def prepare(folder: Path) -> None:
            shutil.copy(flight, folder / "flight.ulg")
            if again:
                cli(folder, lambda n: None, *(arg.replace("flight.ulg", "old.ulg") for arg in args))

        def prepare_old(folder: Path) -> None:
            old = flight.read_bytes()
            (folder / "old.ulg").write_bytes(old[: len(old) * 3 // 4])
            prepare(folder)

        return Job(lambda f, m: cli(f, m, *args), prepare_old if again else prepare, **options)

    source = "{folder}/flight.ulg"
    found = {
        f"convert {out}{' --force' if again else ''}": job(
            "convert", source, f"{{folder}}/{out}", *(("--force",) if again else ()), again=again
        )
        for out in ("t.parquet/", "t.csv/", "t.ndjson", "t.arrow")
        for again in (False, True)
    }
    found["split"] = job("split", source, "--every", "0.005s", "-o", "{folder}/parts", single=True)
    found["report"] = job("report", source, "-o", "{folder}/r.html")
    return found


def fleet_jobs(scratch: Path) -> dict[str, Job]:
    """Return what writes datasets of many logs."""
    content = Simple()
    logs = scratch / "logs"
    logs.mkdir()
    for n, name in enumerate(("ulog", "mcap", "rosbag")):
        old_log(logs / f"{n}{builtin_formats()[name].suffixes[0]}", name, content, 10 * n, 10 * n + 10)

    def ingest(folder: Path, mark: Callable[[int], None], count: int = 3) -> None:
        paths = sorted(logs.iterdir())[:count]
        logreel.fleet.ingest(
            paths,
            folder / "d",
            engine=Inline(),
            progress=lambda path, done, total: mark(len(before(folder)) + done),
        )

    def before(folder: Path) -> list[Path]:
        return [folder] if (folder / "first").exists() else []

    def first(folder: Path) -> None:
        ingest(folder, lambda n: None, 1)
        (folder / "first").touch()

    def judge(folder: Path, due: int, is_done: bool) -> str:
        if not (folder / "d").exists():
            return "the dataset is gone" if due else ""
        try:
            dataset = logreel.fleet.Dataset(folder / "d")
        except LogError as error:
            # Being created: nothing was written yet.
            dataset = None
            if due:
                return f"the dataset cannot be opened: {error}"
        if dataset is not None:
            if len(dataset.manifests) < (3 if is_done else due):
                return f"{len(dataset.manifests)} of {due} logs are in the dataset"
            for topic, parts in dataset.parts.items():
                rows = dataset.table(topic).num_rows
                if rows != sum(part.rows for part in parts):
                    return f"{topic} has {rows} rows"
            found = logreel.fleet.verify(folder / "d")
            if bad := getattr(found, "missing", None) or getattr(found, "damaged", None):
                return f"verify: {bad}"
        ingest(folder, lambda n: None)
        rows = logreel.fleet.Dataset(folder / "d").table("simple").num_rows
        return "" if rows == 30 else f"after another run there are {rows} rows of 30"

    return {
        "ingest": Job(ingest, judge=judge),
        "ingest again": Job(ingest, first, judge),
    }


#: Modules that targets of ``dataset`` need.
NEEDS = {"hdf5": "h5py", "zarr": "zarr", "lance": "lance"}


def rows_of(to: str, folder: Path) -> list[list[float]]:
    """Return the vectors of a dataset, frame by frame."""
    if to == "zarr":
        import zarr

        found = zarr.open_group(folder / "replay_buffer.zarr", mode="r")["data/action"][:]
    elif to == "lance":
        import lance

        found = np.array(lance.dataset(folder / "frames.lance").to_table()["action"].to_pylist())
    else:
        import h5py

        parts = []
        for number in range(len(list(folder.glob("episode_*.hdf5")))):
            with h5py.File(folder / f"episode_{number}.hdf5", "r") as file:
                parts.append(file["action"][:])
        found = np.concatenate(parts)
    rows: list[list[float]] = found.tolist()
    return rows


def dataset_jobs(scratch: Path) -> dict[str, Job]:
    """Return what writes training data."""
    logs = [scratch / f"{n}.mcap" for n in range(2)]
    for n, path in enumerate(logs):
        old_log(path, "mcap", Simple(), 30 * n, 30 * n + 30)
    spec = {
        "rate": "200Hz",
        "task": "Count.",
        "features": {"action": {"topic": "simple", "fields": ["n", "x"], "max_error": "1s"}},
    }

    def build(
        folder: Path, mark: Callable[[int], None], count: int = 2, rate: str = "200Hz", to: str = "lerobot"
    ) -> None:
        found = logreel.dataset(
            logs[:count], folder / "d", spec | {"rate": rate}, to=to, progress=lambda done, total: mark(done)
        )
        assert len(found.episodes) == count

    def whole(count: int, rate: str) -> Contents:
        folder = scratch / f"whole{count}{rate}"
        folder.mkdir()
        build(folder, lambda n: None, count, rate)
        return contents(folder)

    new, other = whole(2, "200Hz"), whole(2, "100Hz")

    def judge(before: Contents | None, folder: Path, due: int, is_done: bool) -> str:
        now = contents(folder)
        if is_done and now != new:
            return (
                f"after the end it is not the new one: {sorted(n for n in new if now.get(n) != new[n])[:5]}"
            )
        if before is not None and now not in (before, new):
            return "it is neither the old one nor the new one"
        if before is None and due and len(EpisodeRecords(folder / "d").logs) < due:
            return f"{due} finished logs are not recorded"
        build(folder, lambda n: None)
        now = contents(folder)
        wrong_names = sorted(name for name in new | now if now.get(name) != new.get(name))
        return f"after another run there are other files: {wrong_names[:5]}" if wrong_names else ""

    def judge_rows(to: str, folder: Path, due: int, is_done: bool) -> str:
        """As *judge* for targets whose files differ each time, or are written more than once."""
        there = EpisodeRecords(folder / "d")
        if len(there.logs) < due:
            return f"{due} finished logs are not recorded"
        if is_done and rows_of(to, folder / "d") != expected:
            return "after the end there are other rows"
        finished = {path: path.stat().st_ino for path in (folder / "d/logreel/episodes").glob("*.json")}
        build(folder, lambda n: None, to=to)
        if rows_of(to, folder / "d") != expected:
            return "after another run there are other rows"
        again = {path: path.stat().st_ino for path in finished}
        return "" if again == finished else "finished episodes were written again"

    targets = [to for to, module in NEEDS.items() if importlib.util.find_spec(module)]
    if targets:
        (scratch / "expected").mkdir()
        build(scratch / "expected", lambda n: None, to=targets[0])
        expected = rows_of(targets[0], scratch / "expected/d")
    others = {
        f"dataset to {to}{' with one more log' if more else ''}": Job(
            partial(build, to=to),
            partial(build, mark=lambda n: None, count=1, to=to) if more else lambda folder: None,
            partial(judge_rows, to),
        )
        for to in targets
        for more in (False, True)
    }
    return others | {
        "dataset": Job(build, judge=partial(judge, None)),
        "dataset with one more log": Job(
            build, lambda folder: build(folder, lambda n: None, 1), partial(judge, None)
        ),
        "dataset with another rate": Job(
            build, lambda folder: build(folder, lambda n: None, 2, "100Hz"), partial(judge, other)
        ),
    }


#: Jobs that are not of one format.
JOBS = {"tables": table_jobs, "fleet": fleet_jobs, "dataset": dataset_jobs}


def contents(folder: Path) -> Contents:
    """Return what can be compared: files and folders by their final names."""
    found: Contents = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not any(part.startswith(".") or part.endswith(".active") for part in name.split("/")):
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


Contents = dict[str, bytes | None]


def grouped(found: Contents, single: bool) -> dict[str, Contents]:
    """Return the contents by their first name: a folder appears as one; *single*: file by file."""
    groups: dict[str, Contents] = {}
    for name, data in found.items():
        groups.setdefault(name if single else name.partition("/")[0], {})[name] = data
    return groups


def judge_names(old: Contents, new: Contents, single: bool, folder: Path, due: int, is_done: bool) -> str:
    """Return what is wrong if a file is neither the old one nor the new one."""
    before, after, now = (grouped(one, single) for one in (old, new, contents(folder)))
    for name in before | after | now:
        if is_done and now.get(name) != after.get(name):
            return f"after the end of the job {name} is not the new one"
        if now.get(name) not in (before.get(name), after.get(name)):
            return f"{name} is neither the old one nor the new one: {sorted(now.get(name) or ())[:5]}"
    return ""


def check(name: str, job: Job, subsets: int, most: int, seed: int, scratch: Path) -> tuple[int, list[str]]:
    """Return the number of states of a job, and what is wrong in some."""
    calls, rng = Calls(), random.Random(f"{name} {seed}")
    work, trace = scratch / "work", scratch / "trace"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    job.prepare(work)
    old, disk = contents(work), Disk(work)
    calls.record(work, trace)
    job.run(work, lambda n: calls.mark(n, SYNCED))
    calls.mark(0, DONE)
    calls.stop()
    judge = job.judge or partial(judge_names, old, contents(work), job.single)
    events = with_unseen_renames(read_events(trace), work)
    assert any(event.op is Op.WRITE for event in events), "nothing was recorded"
    seen: set[tuple[Any, int, bool]] = set()
    states: list[tuple[str, Any, int, bool]] = []
    due, is_done = 0, False
    for number, event in enumerate(events):
        if event.op is Op.MARK:
            due, is_done = max(due, event.inode), event.place == DONE
        else:
            disk.apply(event)
        for choice in disk.choices(rng, subsets):
            state = disk.state(choice)
            # Bytes know their hash: those of files that stay as they are are not read again.
            key = (tuple(state.items()), due, is_done)
            if key not in seen:
                seen.add(key)
                states.append((f"after call {number} ({event.op.name}), {choice.text}", state, due, is_done))
    if most and len(states) > most:
        # The end is always looked at: there, all must be on the disk.
        last = [one for one in states if one[3]]
        states = last[:most] + rng.sample(states, max(0, most - len(last)))
    return len(states), [f"{name}: {text}" for text in failures(states, judge, scratch / "state")]


def failures(states: list[tuple[str, Any, int, bool]], judge: Judge, folder: Path) -> Iterator[str]:
    for how, state, due, is_done in states:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        put(state, folder)
        try:
            text = judge(folder, due, is_done)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        if text:
            yield f"{how}: {text}"


def main() -> None:
    """Check the jobs of some names."""
    names, subsets, most, seed = sys.argv[1], *map(int, sys.argv[2:5])
    only = sys.argv[5:]
    counts, bad = {}, []
    for name in names.split(","):
        with tempfile.TemporaryDirectory(prefix="logreel-crash-", dir=SHM) as where:
            scratch = Path(where)
            jobs = JOBS[name](scratch) if name in JOBS else format_jobs(name, scratch)
            for title, job in jobs.items():
                if not only or title in only:
                    count, wrong_states = check(title, job, subsets, most, seed, scratch)
                    counts[f"{name}: {title}"] = count
                    bad += [f"{name}: {text}" for text in wrong_states]
    print(json.dumps(counts))  # noqa: T201
    if bad:
        sys.exit(f"{len(bad)} of {sum(counts.values())} states:\n" + "\n".join(bad[:30]))


if __name__ == "__main__":
    main()
