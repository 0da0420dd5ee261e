"""Run verbs while a call of the system fails, or memory ends. Run as ``python failing_calls.py CASES SEED VERB…``.

The process is started with the library of system_calls.c, and each run is a fork of it. Every verb runs with the
examples of its help (LINES has others where these need a network or do not end). First without a fault, which counts
its calls; then call number k fails, for CASES random pairs of a fault and k. In further runs, which CASES counts, too,
no call fails, but the address space is limited, to so many bytes more than the process has when it begins. CASES 0:
every k of every fault, and limits that rise until the run succeeds.

What must hold after each run:

* It ends with a documented exit code and, unless that is 0, a message; never with a traceback, a signal, or a hang.
  Without memory, a library of FRAGILE may end it, if the function that died is of that library; and so may glibc.
  Python may wait forever for a thread that had no memory to start.
* With exit code 0 it has done what the run without a fault did. Interrupted calls, and calls that read or write a part,
  change nothing.
* Files and folders under final names are those of before, or those of a run without a fault.
* No temporary file is left, unless the call failed that would remove it.

Prints the number of runs by verb as JSON; ends with failures.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import functools
import gc
import http.client
import importlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "damage"), str(TESTS / "cli"), str(TESTS)]

from crash_states import SHM, Contents, contents, grouped  # noqa: E402
from test_help import examples, samples, words_of  # noqa: E402

import logreel  # noqa: E402
from logreel.cli import main as command  # noqa: E402
from support.harness.faults import Inline  # noqa: E402
from support.harness.limits import ended  # noqa: E402
from support.harness.system_calls import ANY, SHORT, Calls, Kind  # noqa: E402

#: Exit codes that docs/cli.md lists, and 143: ended by SIGTERM.
CODES = {0, 1, 2, 3, 4, 5, 130}
#: Seconds until a run counts as one that hangs, and seconds of verbs that serve until they are stopped.
SECONDS, SERVED = 60, 20
#: Libraries that end the process where they cannot allocate, and those that libraries call.
FRAGILE = ("_duckdb.", "libarrow", "libparquet")
RUNTIME = (
    "calls.so",
    "libc.so",
    "libc-",
    "libgcc_s",
    "libstdc++",
    "libpthread",
    "ld-linux",
    "linux-vdso",
    "libm.so",
)
#: Last words of glibc where it cannot allocate the variables of a thread; it exits with 127.
NO_ROOM_FOR_THREAD = "cannot allocate memory for thread-local data: ABORT\n"
#: What Python says of a thread that had no memory to start.
DEAD_THREAD = "Exception ignored in thread started by"
_ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
#: Verbs whose examples do not end or need a network, with lines that do.
LINES = {
    "play": ["logreel play old.bag --rate 1000 --to stdout", "logreel play old.bag --rate 1000 -t /gps/fix"],
    "record": [
        "logreel record out.mcap --from messages.ndjson",
        "logreel record out.bag --from messages.ndjson --force",
    ],
    "view": ["logreel view first.ulg --no-browser --port 0"],
    "serve": ["logreel serve logs --port 0"],
    "fleet ingest": ["logreel fleet ingest logs -o fleet --workers 1"],
    "demo": ["logreel demo --dir tour"],
    "dataset": ["logreel dataset old.bag -o lane --spec lane.toml --to lerobot"],
    "definitions": ["logreel definitions add old.bag", "logreel definitions list 'sensor_msgs/*'"],
    "carla replay": ["logreel carla replay town.log --json"],
}
#: Samples that the examples of the help do not have.
MORE_SAMPLES = {
    "lane.toml": b"""
rate = "10Hz"
task = "Follow the lane."
[sync]
max_error = "60ms"
[features.action]
topic = "/cmd_vel"
fields = ["linear.x", "angular.z"]
method = "previous"
"""
}
#: Manifests say of logs that could not be read that they failed; the exit code is 3 then, and the next run reads them.
FAILED_LOGS = "fleet/_catalog/logs/"
#: Verbs that serve until they are stopped, with the requests to them; {id}: the id of the first log.
ENDLESS = {
    "view": ["/", "/api/logs", "/api/channels?log={id}"],
    "serve": ["/logs", "/logs/{id}", "/logs/{id}/slice?topic=vehicle_attitude"],
}
#: Groups, and verbs that touch no file.
NO_FILES = {"fleet", "formats", "new-format", "completion"}
#: Files whose content is not final: what the next run goes on with, or removes.
UNFINISHED = ("fleet/_catalog/stage", "fleet/_catalog/lock", "lane/logreel/dataset.json")
#: Names of files that are not complete.
TEMPORARY = re.compile(r"\.partial$|^\.logreel-|\.part$|^\..*\.\d+-\d+$")


@dataclass(frozen=True)
class Fault:
    """What happens to a call: an error number or SHORT, of these kinds, once or from then on."""

    name: str
    kinds: Kind
    code: int
    always: bool = False
    #: Whether the result is the same as without it.
    harmless: bool = False
    #: Bytes of memory that the run may take beyond what the process has; no call fails then.
    room: int | None = None


CREATES = Kind.WRITE | Kind.SYNC | Kind.RENAME | Kind.TRUNCATE | Kind.MKDIR
FAULTS = (
    Fault("EIO", ANY, errno.EIO),
    Fault("EIO from then on", ANY & ~(Kind.UNLINK | Kind.CLOSE), errno.EIO, always=True),
    Fault("ENOSPC", CREATES, errno.ENOSPC),
    Fault("full disk", CREATES, errno.ENOSPC, always=True),
    Fault("EACCES", Kind.OPEN | Kind.UNLINK | Kind.RENAME | Kind.MKDIR, errno.EACCES),
    Fault("ENOMEM", Kind.MAP, errno.ENOMEM),
    Fault(
        "EINTR", Kind.OPEN | Kind.READ | Kind.WRITE | Kind.SYNC | Kind.TRUNCATE, errno.EINTR, harmless=True
    ),
    Fault("a part", Kind.READ | Kind.WRITE, SHORT, harmless=True),
    Fault("parts only", Kind.READ | Kind.WRITE, SHORT, always=True, harmless=True),
)

#: Bytes of the limits of memory: from what is too little for everything to what is enough for everything.
ROOMS = [int((64 << 10) * 2 ** (n / 2)) for n in range(30)]
MEMORY_FAULTS = [Fault(f"{room / 1048576:.2f} MiB of memory", Kind(0), 0, room=room) for room in ROOMS]


@dataclass
class Outcome:
    """Result of a run: exit code, -n for signal n; output; content of the folder; call that failed; calls by kind."""

    code: int
    out: bytes
    err: str
    files: Contents
    temporary: list[str]
    failed: str
    counts: dict[int, int]
    modules: list[str]
    #: Functions of a process that died, innermost first.
    frames: list[str]


def in_fork(folder: Path, job: Callable[[], object]) -> None:
    """Do a job in a folder, in a process that imports what only the job needs."""
    child = os.fork()
    if not child:
        os.chdir(folder)
        job()
        os._exit(0)
    assert ended(child) == 0


class Runner:
    """Runs command lines in copies of a folder with samples."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._calls, self._samples = scratch, Calls(), samples() | MORE_SAMPLES
        self._numbers, self._crash = itertools.count(), scratch / "crash"
        #: A dataset of the logs, made once.
        self._dataset: Path | None = None

    def prepare(self, verb: str, words: list[str]) -> Path:
        """Return a new folder with the samples that a command line names; those of datasets and manifests need one."""
        base = self._scratch / f"base{next(self._numbers)}"
        needs_dataset = verb.startswith("fleet ") and verb != "fleet ingest"
        base.mkdir()
        for name, data in self._samples.items():
            if (needs_dataset and name.startswith("logs/")) or {name, name.partition("/")[0]} & {*words}:
                (base / name).parent.mkdir(exist_ok=True)
                (base / name).write_bytes(data)
        if verb == "verify":
            (base / "drive.bag").write_bytes(self._samples["old.bag"])
            in_fork(base, lambda: logreel.convert("drive.bag", "drive/", manifest="drive.json"))
        if needs_dataset:
            if self._dataset is None:
                in_fork(base, lambda: logreel.fleet.ingest("logs", "fleet", engine=Inline()))
                self._dataset = base / "fleet"
            else:
                shutil.copytree(self._dataset, base / "fleet")
        return base

    def run(self, base: Path, verb: str, words: list[str], fault: Fault, number: int) -> Outcome:
        """Run a command in a fork; call *number* of the kinds of *fault* fails, 0: none."""
        # Of the same name each time: paths of logs are part of some results.
        case = self._scratch / "case"
        work, said = case / "work", self._scratch / "said"
        (self._scratch / "err").write_bytes(b"")
        shutil.copytree(base, work)
        child = os.fork()
        if not child:
            self._child(case, work, said, verb, words, fault, number)
        if verb in ENDLESS:
            use_and_stop(verb, (case / "out", self._scratch / "err"), child)
        status = os.waitstatus_to_exitcode(ended(child, 2 * SECONDS))
        report = json.loads(said.read_text() or "{}") if said.exists() else {}
        outcome = Outcome(
            status,
            (case / "out").read_bytes(),
            (self._scratch / "err").read_text(errors="replace"),
            {name: data for name, data in contents(work).items() if not name.startswith(UNFINISHED)},
            sorted(
                name + "/" * (work / name).is_dir()
                for name in (path.relative_to(work).as_posix() for path in work.rglob("*"))
                if TEMPORARY.search(os.path.basename(name)) and not name.startswith(UNFINISHED)
            ),
            report.get("failed", "") if fault.room is None else "memory",
            {int(kind): count for kind, count in report.get("counts", {}).items()},
            report.get("modules", []),
            self._crash.read_text(errors="replace").splitlines() if status < 0 else [],
        )
        shutil.rmtree(case)
        said.unlink(missing_ok=True)
        return outcome

    def _child(
        self, case: Path, work: Path, said: Path, verb: str, words: list[str], fault: Fault, number: int
    ) -> None:
        code = 99
        try:
            faulthandler.disable()
            os.chdir(work)
            os.environ["LOGREEL_DATA"] = os.fspath(work / "data")
            os.dup2(os.open(case / "out", os.O_CREAT | os.O_WRONLY, 0o600), 1)
            os.dup2(os.open(self._scratch / "err", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            # Lines of stderr are read while the process runs.
            sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", 1, closefd=False)  # noqa: SIM115
            signal.signal(signal.SIGINT, signal.default_int_handler)
            before = set(sys.modules)
            signal.alarm(SECONDS)
            self._calls.report_crash(self._crash)
            if fault.room is not None:
                self._calls.grow_stack()
                resource.setrlimit(resource.RLIMIT_AS, (used_memory() + fault.room,) * 2)
            self._calls.fail(case, fault.kinds, number, fault.code, fault.always)
            code = command(words)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            counts, failed = self._calls.counts, self._calls.failed
            self._calls.stop()
            modules = sorted(set(sys.modules) - before)
            said.write_text(json.dumps({"counts": counts, "failed": failed, "modules": modules}))
        except BaseException:
            self._calls.stop()
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        os._exit(code)


def used_memory() -> int:
    """Return the address space of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def blamed(frames: list[str]) -> str:
    """Return the file name of the library whose function died; empty if the frames name none.

    Functions of C and C++ that it has called are left out.
    """
    files = (os.path.basename(frame.partition("(")[0].partition(" [")[0]) for frame in frames)
    return next((name for name in files if name and not name.startswith(RUNTIME)), "")


def use_and_stop(verb: str, files: tuple[Path, ...], child: int) -> None:
    """Send the requests of a verb that serves to a process, and then Ctrl-C."""
    end, found = time.monotonic() + SERVED, None
    while found is None and time.monotonic() < end and os.waitid(os.P_PID, child, _ENDED) is None:
        time.sleep(0.01)
        said = "".join(path.read_text(errors="replace") for path in files if path.exists())
        found = re.search(r"http://(127\.0\.0\.1:\d+)/[#?]token=(\S+)", said)
    name = "none"
    for path in ENDLESS[verb] if found is not None else ():
        connection = http.client.HTTPConnection(found[1], timeout=SERVED)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", path.format(id=name), headers={"Authorization": f"Bearer {found[2]}"})
            answer = connection.getresponse().read()
            if ids := re.search(rb'"id": ?"([^"]+)"', answer):
                name = ids[1].decode()
    if os.waitid(os.P_PID, child, _ENDED) is None:
        os.kill(child, signal.SIGINT)


def lines_of(verb: str) -> list[str]:
    return LINES.get(verb) or [one.line for one in examples(verb)]


class Plain:
    """A command line that runs without a fault: folder before it, outcome, and names of files that are always the same.

    Raises AssertionError if it does not run.
    """

    def __init__(self, runner: Runner, verb: str, line: str) -> None:
        self.words = words_of(line)
        self.base = runner.prepare(verb, [word.rstrip("/") for word in self.words])
        first = runner.run(self.base, verb, self.words, FAULTS[0], 0)
        assert first.code in (0, 3, 4, 130), f"{line}: {first.code} {first.err[-800:]}"
        assert "Traceback" not in first.err, first.err
        # Forks have what this process has imported.
        for name in first.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        # A collection in a fork would copy the pages of all these objects.
        gc.freeze()
        self.outcome, self._again = first, lambda: runner.run(self.base, verb, self.words, FAULTS[0], 0)
        self.old = contents(self.base)

    @functools.cached_property
    def steady(self) -> set[str]:
        """Names of files that a second run without a fault writes in the same way."""
        again = self._again().files
        return {name for name, data in self.outcome.files.items() if data == again.get(name)}

    def judge(self, outcome: Outcome, fault: Fault) -> str:
        """Return what is wrong with a run; empty if nothing is."""
        said = outcome.err[-1500:]
        if outcome.code == -signal.SIGALRM and fault.room is not None and DEAD_THREAD in outcome.err:
            # Python waits forever for the start of a thread that has died: python/cpython#140746.
            return ""
        if outcome.code < 0:
            library = blamed(outcome.frames)
            if fault.room is not None and library.startswith(FRAGILE):
                # That library, not logreel, dies when it cannot allocate: docs/reliability.md names it.
                return ""
            return (
                f"ended by signal {-outcome.code} in {library or 'no library'}: {said} {outcome.frames[:12]}"
            )
        if fault.room is not None and outcome.code == 127 and outcome.err.endswith(NO_ROOM_FOR_THREAD):
            # glibc ends the process.
            return ""
        if outcome.code not in CODES:
            return f"exit code {outcome.code}: {said}"
        if "Traceback" in outcome.err or "internal error" in outcome.err:
            return f"not documented: {said}"
        if (
            outcome.code not in (0, 130)
            and not outcome.err.strip()
            and not (outcome.code == 4 and outcome.out)
        ):
            return f"exit code {outcome.code} without a message"
        if not outcome.failed:
            return ""
        # A folder is opened only to remove what is in it.
        may_remain = (
            outcome.failed.startswith(("unlink", "rmdir"))
            or (fault.always and fault.code == errno.EIO)
            or any(
                name[-1] == "/" and f"{outcome.failed}/".endswith(f"/{name}") for name in outcome.temporary
            )
        )
        if outcome.temporary and not may_remain:
            return f"left behind: {outcome.temporary} ({outcome.code}, {said})"
        before, after, now = (
            grouped(self.old, True),
            grouped(self.outcome.files, True),
            grouped(outcome.files, True),
        )
        names = before | after | now
        if outcome.code == 3:
            names = {name: names[name] for name in names if not name.startswith(FAILED_LOGS)}
        for name in names:
            if now.get(name) not in (before.get(name), after.get(name)) and (name in self.steady):
                return f"{name} is neither old nor new ({outcome.code}, {said})"
            if name not in after and name not in before and not may_remain:
                return f"{name} is not a file of a complete run ({outcome.code}, {said})"
        if fault.harmless and outcome.code != self.outcome.code:
            return f"exit code {outcome.code} in place of {self.outcome.code}: {said}"
        if outcome.code == 0:
            missing = [name for name in after if now.get(name) != after[name] and name in self.steady]
            if missing and not outcome.failed.startswith(("unlink", "rmdir")):
                return f"exit code 0, but {missing[:5]} are not those of a run without a fault: {said}"
        return ""


def check(runner: Runner, verb: str, line: str, cases: int, rng: random.Random) -> tuple[int, list[str]]:
    """Return the number of runs of an example, and what is wrong in some."""
    plain = Plain(runner, verb, line)
    todo = [
        (fault, k)
        for fault in FAULTS
        for k in range(1, 1 + sum(n for kind, n in plain.outcome.counts.items() if kind & fault.kinds))
    ]
    if cases:
        # A fifth of the runs lacks memory.
        todo += [(fault, 0) for fault in rng.choices(MEMORY_FAULTS, k=len(todo) // 4 + 1)]
        todo = rng.sample(todo, min(cases, len(todo)))
    else:
        todo += [(fault, 0) for fault in MEMORY_FAULTS]
    bad, count = [], 0
    for fault, k in todo:
        outcome = runner.run(plain.base, verb, plain.words, fault, k)
        count += 1
        if text := plain.judge(outcome, fault):
            bad.append(f"{line}: {fault.name} at call {k}, {outcome.failed}: {text}")
        elif fault.room is not None and not cases and outcome.code == plain.outcome.code:
            return count, bad
    return count, bad if cases else [*bad, f"{line}: {ROOMS[-1] >> 20} MiB of memory are not enough"]


def all_checks(
    runner: Runner, verbs: list[str], cases: int, seed: int
) -> Iterator[tuple[str, int, list[str]]]:
    for verb in verbs:
        lines = lines_of(verb)
        for line in lines[: 1 if cases else None]:
            yield verb, *check(runner, verb, line, cases, random.Random(f"{line} {seed}"))


def main() -> None:
    """Check some verbs."""
    cases, seed, verbs = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    counts: dict[str, int] = {}
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="logreel-failing-", dir=SHM) as where:
        runner = Runner(Path(where))
        for verb, count, texts in all_checks(runner, verbs, cases, seed):
            counts[verb] = counts.get(verb, 0) + count
            bad += texts
    print(json.dumps(counts))  # noqa: T201
    if bad:
        sys.exit(f"{len(bad)} of {sum(counts.values())} runs:\n" + "\n".join(bad[:30]))


if __name__ == "__main__":
    main()
