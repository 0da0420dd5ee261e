"""Rule files in the style of ROS, and bags with messages of their old types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import logreel
from logreel.schemas.ros1msg import Registry, define, layout
from support.oracles.ros1 import encoded

RULE = "=" * 80
HEADER = "uint32 seq\ntime stamp\nstring frame_id\n"


def joined(text: str, **used: str) -> str:
    """Return a definition followed by those of the types that it uses; ``pkg__Type`` stands for ``pkg/Type``."""
    others = (f"\n{RULE}\nMSG: {name.replace('__', '/')}\n{one}" for name, one in used.items())
    return text + "".join(others)


def rule(
    old: tuple[str, str],
    new: tuple[str, str],
    update: str,
    migrated: Iterable[tuple[str, str]] = (),
    order: int = 0,
    more: str = "",
    name: str = "",
) -> str:
    """Return the class of a rule from one type and text to another; *update*: lines of its method."""
    lines = "".join(f"\t\t{line}\n" for line in update.strip("\n").split("\n"))
    label = name or f"update_{old[0].replace('/', '_')}_{abs(hash(old)) % 10**8}"
    return (
        f'class {label}(MessageUpdateRule):\n\told_type = "{old[0]}"\n\told_full_text = """\n{old[1]}\n"""\n\n'
        f'\tnew_type = "{new[0]}"\n\tnew_full_text = """\n{new[1]}\n"""\n\n\torder = {order}\n'
        f"\tmigrated_types = {list(migrated)!r}\n\n\tvalid = True\n\n{more}"
        f"\tdef update(self, old_msg, new_msg):\n{lines}\n"
    )


def write_bag(
    path: Path, topics: Mapping[str, tuple[str, str, list[dict[str, Any]]]], **options: Any
) -> Path:
    """Write a bag with topics: type, concatenated definition, and messages, which are taken in turns."""
    with logreel.create(path, **options) as writer:
        channels = []
        for topic, (kind, text, rows) in topics.items():
            definition = define(kind, text, "*", Registry(known=False))
            number = writer.add_channel(topic, logreel.Schema(kind, "ros1msg", definition.text))
            channels.append((number, layout(definition).root, rows))
        for turn in range(max(len(rows) for _, _, rows in channels)):
            for number, root, rows in channels:
                if turn < len(rows):
                    writer.write(number, 10**18 + turn * 10**7 + number, encoded(root, rows[turn]))
    return path
