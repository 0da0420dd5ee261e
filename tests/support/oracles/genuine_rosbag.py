"""Use of genuine rosbag, which may be installed in the Python of the system."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

SYSTEM = "/usr/bin/python3"


@functools.cache
def _installed(module: str) -> bool:
    try:
        return not subprocess.run([SYSTEM, "-c", f"import {module}"], capture_output=True).returncode
    except OSError:
        return False


def genuine(*messages: str) -> None:
    """Skip the test if rosbag or one of the packages of *messages* is not installed."""
    for module in ("genpy", "rosbag", *(f"{package}.msg" for package in messages)):
        if not _installed(module):
            package = module.removesuffix(".msg").replace("_", "-").replace("genpy", "rosbag")
            pytest.skip(f"no {module} in {SYSTEM} (Debian: python3-{package})")


class Connection(NamedTuple):
    """The messages of a connection, as rosbag reads them; *header*: with topic, type, checksum and definition."""

    topic: str
    header: dict[str, str]
    times: list[int]
    payloads: list[bytes]


_READ = """
import json, sys, rosbag
found = {}
with rosbag.Bag(sys.argv[1]) as bag:
    for topic, (kind, data, md5, _, _), time, header in bag.read_messages(raw=True, return_connection_header=True):
        text = {str(name): value if isinstance(value, str) else value.decode() for name, value in header.items()}
        assert (kind, md5) == (text["type"], text["md5sum"])
        one = found.setdefault(json.dumps([topic, text], sort_keys=True), ([], []))
        one[0].append(time.to_nsec())
        one[1].append(data.hex())
json.dump(list(found.items()), sys.stdout)
"""


def connections(path: Path) -> list[Connection]:
    """Return the connections of a bag with their messages, sorted by topic and header."""
    return _connections(_READ, path)


def _connections(program: str, path: Path, *words: str) -> list[Connection]:
    done = subprocess.run([SYSTEM, "-c", program, str(path), *words], capture_output=True)
    assert not done.returncode, done.stderr
    found = []
    for key, (times, payloads) in sorted(json.loads(done.stdout)):
        topic, header = json.loads(key)
        found.append(Connection(topic, header, times, [bytes.fromhex(one) for one in payloads]))
    return found


class Decoded(NamedTuple):
    """A message that rosbag decoded; *data*: times and durations as nanoseconds, bytes as lists of numbers."""

    topic: str
    type: str
    md5: str
    time: int
    data: dict[str, object]


_DECODE = """
import json, sys, genpy, rosbag
def plain(value):
    if isinstance(value, genpy.Message):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, (genpy.Time, genpy.Duration)):
        return value.to_nsec()
    if isinstance(value, (list, tuple, bytes)):
        return [plain(item) for item in value]
    return value
found = []
with rosbag.Bag(sys.argv[1]) as bag:
    for topic, message, time in bag.read_messages():
        found.append([topic, message._type, message._md5sum, time.to_nsec(), plain(message)])
json.dump(found, sys.stderr)
"""


def decoded(path: Path) -> list[Decoded]:
    """Return all messages of a bag as rosbag decodes them; a warning of rosbag fails the test."""
    done = subprocess.run([SYSTEM, "-c", _DECODE, str(path)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    # rosbag prints a warning for a definition that has another checksum than the bag states.
    assert not done.stdout
    return [Decoded(*one) for one in json.loads(done.stderr)]


_FIX = """
import json, sys, genpy.dynamic, genpy.message, rosbag.migration
source, target, rules, wanted = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
classes = {name: genpy.dynamic.generate_dynamic(name, text)[name] for name, text in wanted.items()}
genpy.message.get_message_class = lambda name, reload_on_error=False: classes.get(name)
migrator = rosbag.migration.MessageMigrator(rules, plugins=False)
missing = rosbag.migration.fixbag2(migrator, source, target)
json.dump([rule.get_class_def() for _, rules in missing for rule in rules], sys.stdout)
"""


def fix(source: Path, target: Path, rules: list[Path], wanted: dict[str, str]) -> list[str]:
    """Migrate a bag by genuine ``rosbag fix``; return the rules that are missing, as classes it generates.

    wanted  concatenated definition by type: the message types of the system
    """
    given = json.dumps([str(one) for one in rules]), json.dumps(wanted)
    command = [SYSTEM, "-W", "ignore", "-c", _FIX, str(source), str(target), *given]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert "Cannot load" not in done.stderr, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


_FILTER = """
import contextlib, io, sys, rosbag
with contextlib.redirect_stdout(io.StringIO()):
    rosbag.rosbagmain(["rosbag", "filter", sys.argv[2], sys.argv[1], sys.argv[3]])
"""


def filtered(source: Path, out: Path, expression: str) -> list[Connection]:
    """Return what ``rosbag filter`` writes for *expression*, in Python, to *out*."""
    return _connections(_FILTER + _READ, out, str(source), expression)
