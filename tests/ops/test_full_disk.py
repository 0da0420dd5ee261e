"""On a full or failing disk, for every writable format: no existing file changes, no incomplete file gets a name."""

from __future__ import annotations

import errno
import os
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.registry.format import Format
from support.builders.contents import SAMPLES
from support.formats import builtin_formats
from support.harness.cli_runner import environment
from support.harness.forked import forked_python

ABLE = [f for f in builtin_formats().values() if f.create is not None]
#: Every verb that writes a log: source, output.
VERBS: dict[str, Callable[[Path, Path], Any]] = {
    "slice": lambda source, out: logreel.slice(source, out, force=True),
    "part": lambda source, out: logreel.slice(source, out, end="-0.1s", force=True),
    "sort": lambda source, out: logreel.sort(source, out, force=True),
    "merge": lambda source, out: logreel.merge([source, source], out, force=True),
    "recover": lambda source, out: logreel.recover(source, out, force=True),
    "split": lambda source, out: logreel.split(source, out.parent / "parts", every=10**9, force=True),
}
#: Calls of the system, and how the first of them may go well.
CALLS = {"write": 0, "later write": 1, "fsync": 0, "replace": 0}


@pytest.fixture(params=ABLE, ids=lambda fmt: fmt.name)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    fmt: Format = request.param
    suffix = fmt.suffixes[0]
    path = tmp_path / f"source{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    (tmp_path / "parts").mkdir()
    (tmp_path / f"old{suffix}").write_bytes(b"older output")
    return path


def state(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def fail_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    call = name.split()[-1]
    real, left = getattr(os, call), [CALLS[name]]

    def fail(*args: Any) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            return real(*args)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, call, fail)


@pytest.mark.parametrize("call", CALLS)
def test_a_failed_call_leaves_all_files_unchanged(
    source: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, out = state(source.parent), source.with_name(f"old{source.suffix}")
    # Large pieces are handed over at once otherwise, so that there is no later one.
    monkeypatch.setattr("logreel.io.append_file.BUFFER", 1 << 12)
    said = []
    for verb, write in VERBS.items():
        with monkeypatch.context() as patch:
            fail_at(patch, call)
            try:
                write(source, out)
            except (logreel.LogError, OSError) as error:
                said.append(str(error))
        if call == "later write" and state(source.parent) != before:
            # What a format copies in one piece has no later one.
            assert logreel.open(out).message_count > 0
            out.write_bytes(before[out.name])
        assert state(source.parent) == before, verb
    assert all("No space left" in text or "full" in text for text in said)
    assert said if call == "later write" else len(said) == len(VERBS)


@pytest.mark.parametrize("call", CALLS)
def test_a_recording_that_fails_leaves_a_sound_start(
    source: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, out = state(source.parent), source.with_name(f"old{source.suffix}")
    monkeypatch.setattr("logreel.io.append_file.BUFFER", 1 << 12)
    log = logreel.open(source)
    w = logreel.create(out, format=log.format, force=True, flush_every=None)
    numbers = {ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in log.match(None)}
    messages = [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")]
    some = len(messages) // 2
    for topic, time, data in messages[:some]:
        w.write(numbers[topic], time, data)
    w.flush(sync=True)

    def rest() -> None:
        for topic, time, data in messages[some:]:
            w.write(numbers[topic], time, data)
        w.close()

    with monkeypatch.context() as patch:
        fail_at(patch, call)
        with pytest.raises((logreel.LogError, OSError)):
            rest()
    w.leave()
    after = state(source.parent)
    unfinished = after.pop(f"{out.name}.active")
    assert after == before
    found = logreel.open(unfinished)
    assert found.message_count >= some
    done = logreel.recover(found, source.with_name(f"saved{source.suffix}"))
    assert done.messages == found.message_count
    assert not logreel.open(done.path).problems


LIMITED = """
    import os, resource, signal, sys
    # Python would leave the modules that it compiles cut at the limit, and all others would fail to import them.
    sys.dont_write_bytecode = True
    sys.path[:0] = sys.argv[1].split(os.pathsep)
    from pathlib import Path
    import logreel
    from test_full_disk import VERBS
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    source, out = map(Path, sys.argv[2:4])
    limit = min(50_000, source.stat().st_size // 8)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for verb, write in VERBS.items():
        try:
            write(source, out)
        except logreel.LogError as error:
            if "File too large" not in str(error):
                sys.exit(f"{verb}: {error}")
        else:
            sys.exit(f"{verb} wrote a file in spite of its size")
"""


def test_the_file_size_limit_of_the_system_leaves_all_files_unchanged(source: Path) -> None:
    before, out = state(source.parent), source.with_name(f"old{source.suffix}")
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, (here, here.parent, Path(logreel.__file__).parents[1])))
    command = forked_python("-c", textwrap.dedent(LIMITED), path, source, out)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    assert state(source.parent) == before
