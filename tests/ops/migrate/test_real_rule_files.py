"""Rule files of others: those that Debian installs, or those of the folder LOGREEL_RULE_FILES, as ``rosbag fix``."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

import logreel
from logreel.ops.migrate.bmr import read_bmr
from logreel.ops.migrate.types import BoundRule
from logreel.schemas.ros1msg import DefinitionRegistry, define, layout
from support.oracles import genuine_rosbag
from support.oracles.ros1 import random_payload

INSTALLED = sorted(Path("/usr/share").glob("*/migration_rules/*.bmr"))
FOLDER = os.environ.get("LOGREEL_RULE_FILES")
FILES = sorted(Path(FOLDER).rglob("*.bmr")) if FOLDER else INSTALLED


def bound(path: Path) -> list[BoundRule]:
    return [rule.fixed for rule in read_bmr(path) if rule.fixed is not None]


def write_old(path: Path, rule: BoundRule) -> None:
    """Write messages of the old type of *rule* with random fields, whose texts rules may look at."""
    definition = define(rule.old.name, rule.old.text, "*", DefinitionRegistry(known=False))
    rng, root = random.Random(rule.old.key), layout(definition).root
    with logreel.create(path) as writer:
        number = writer.add_channel("/x", logreel.Schema(rule.old.name, "ros1msg", definition.text))
        for n in range(4):
            writer.write(number, 10**18 + n * 10**7, random_payload(root, rng))


def sections(name: str, text: str) -> dict[str, str]:
    """Return the definition of *name* and of the types that it uses, from a concatenated definition."""
    parts = re.split(r"^=+\nMSG: (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip([name, *parts[1::2]], parts[::2], strict=True))


def latest(texts: dict[str, str]) -> dict[str, str]:
    """Return concatenated definitions in which each type has one version, as in an installed system."""
    found = {name: sections(name, text) for name, text in texts.items()}
    own = {name: parts[name] for name, parts in found.items()}
    return {
        name: own[name]
        + "".join(
            f"{'=' * 80}\nMSG: {one}\n{own.get(one, text)}\n" for one, text in parts.items() if one != name
        )
        for name, parts in found.items()
    }


def write_types(folder: Path, texts: dict[str, str]) -> None:
    """Write the types of concatenated definitions as files of packages."""
    for name, text in texts.items():
        for one, body in sections(name, text).items():
            package, _, short = one.partition("/")
            path = folder / package / "msg" / f"{short}.msg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)


def test_real_rules_give_the_messages_of_rosbag_fix(tmp_path: Path) -> None:
    genuine_rosbag.genuine("std_msgs")
    if not FILES:
        pytest.skip("no rule files (Debian: ros-sensor-msgs, or LOGREEL_RULE_FILES)")
    every = [rule for path in FILES for rule in bound(path)]
    olds = {(rule.old.name, rule.old.key) for rule in every}
    wanted = latest({r.new.name: r.new.text for r in every if (r.new.name, r.new.key) not in olds})
    write_types(tmp_path / "wanted", wanted)
    compared, differ = 0, []
    for n, rule in enumerate(every):
        source, mine, theirs = (tmp_path / f"{n}{name}.bag" for name in ("", "mine", "theirs"))
        write_old(source, rule)
        try:
            lost = genuine_rosbag.fix(source, theirs, FILES, wanted)
        except AssertionError:
            # The rule refuses these messages. Here they are counted one by one.
            lost = ["refused"]
        try:
            done = logreel.migrate(source, mine, rules=FILES, to=tmp_path / "wanted")
        except logreel.LogError as error:
            if not lost:
                differ.append(f"{rule.old.name}: {error}")
            continue
        if lost or done.skipped:
            if not lost or not done.skipped:
                differ.append(f"{rule.old.name}: {done.skipped}, {[one[:200] for one in lost]}")
            continue
        due, found = genuine_rosbag.connections(theirs), genuine_rosbag.connections(mine)
        compared += 1
        for one, other in zip(found, due, strict=True):
            if (one.header["type"], one.header["md5sum"]) != (other.header["type"], other.header["md5sum"]):
                differ.append(f"{rule.old.name}: {one.header} instead of {other.header}")
            if (one.times, one.payloads) != (other.times, other.payloads):
                differ.append(f"{rule.old.name}: other messages")
    assert not differ
    assert compared > len(every) / 2
