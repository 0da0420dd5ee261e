"""Rule files in the style of ROS, and bags with messages of their old types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import logreel
from logreel.schemas.ros1msg import DefinitionRegistry, define, layout
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
            definition = define(kind, text, "*", DefinitionRegistry(known=False))
            number = writer.add_channel(topic, logreel.Schema(kind, "ros1msg", definition.text))
            channels.append((number, layout(definition).root, rows))
        for turn in range(max(len(rows) for _, _, rows in channels)):
            for number, root, rows in channels:
                if turn < len(rows):
                    writer.write(number, 10**18 + turn * 10**7 + number, encoded(root, rows[turn]))
    return path


_PART = "float64 x\nstring name\nuint8[] raw\nint16[3] three\n"
_NEW_PART = "uint8[] raw\nfloat64 y\nstring name\nint16[3] three\nint32 added\n"
_OLD = (
    "Header header\nbool flag\nint8 i8\nuint8 u8\nint16 i16\nuint16 u16\nint32 i32\nuint32 u32\nint64 i64\n"
    "uint64 u64\nfloat32 f32\nfloat64 f64\nstring text\ntime at\nduration span\nuint8[] raw\nuint8[4] four\n"
    "float32[] list\nfloat64[3] three\nstring[] names\nPart part\nPart[] parts\nPart[2] two\n"
)
_NEW = "".join(f"{line}\n" for line in reversed(_OLD.strip().split("\n")))
_NEW += "string extra\nPart fresh\nuint8[] none\n"
#: Definition of ``pkg/T`` with fields of every kind, and those that ``every_kind_rules`` lead to, by type.
EVERY_KIND = joined(_OLD, std_msgs__Header=HEADER, pkg__Part=_PART)
EVERY_KIND_AFTER = {
    "pkg/T": joined(_NEW, std_msgs__Header=HEADER, pkg__Part=_NEW_PART),
    "pkg/Part": _NEW_PART,
}


def every_kind_rules(more: str = "") -> str:
    """Return rules for EVERY_KIND that take over all fields in reverse order, with parts migrated; *more*: lines."""
    lines = []
    for name in (line.split()[1] for line in _OLD.strip().split("\n")):
        if name in ("parts", "two"):
            lines.append(f"self.migrate_array(old_msg.{name}, new_msg.{name}, 'Part')")
        elif name in ("header", "part"):
            lines.append(f"self.migrate(old_msg.{name}, new_msg.{name})")
        else:
            lines.append(f"new_msg.{name} = old_msg.{name}")
    lines += ["new_msg.extra = 'é'", "new_msg.fresh.y = 2.5", "new_msg.fresh.name = old_msg.text", more]
    pairs = [("Header", "Header"), ("Part", "Part")]
    same = "\n".join(f"new_msg.{name} = old_msg.{name}" for name in ("name", "raw", "three"))
    return rule(("pkg/T", EVERY_KIND), ("pkg/T", EVERY_KIND_AFTER["pkg/T"]), "\n".join(lines), pairs) + rule(
        ("pkg/Part", _PART), ("pkg/Part", _NEW_PART), f"new_msg.y = old_msg.x\nnew_msg.added = 7\n{same}"
    )
