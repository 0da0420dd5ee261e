"""Safe file names for names with any characters."""

from __future__ import annotations

import random

import pytest

from logreel.outputs.file_names import MAX_BYTES, attachment_names, file_names

# fmt: off
HOSTILE = [
    "", ".", "..", "/", "//", "../../etc/passwd", "/etc/passwd", "a/b", "a.b", "a\\b", "c:\\x", "A", "a",
    "con", "CON", "nul.txt", "aux", "com1", "x" * 300, "x" * 301, "X" * 300, "é", "e\u0301", "a\x00b",
    "a\nb", "\x1b[2J", "-rf", "~", "~root", "~text", "_text", "sensor[1]", "sensor-1", "sensor[01]", "a b",
    "a_b", "a:b", "a*b", "a?b", "trail.", "trail", " lead", "%s", "$HOME", "`id`", "\ud800", "\u202egnp",
    ".hidden", "日本", "日本語", "manifest", "manifest.json", "a\u212a", "ak",
]
# fmt: on


def is_safe(name: str) -> bool:
    plain = all(c.isascii() and (c.isalnum() or c in "_.@+-") for c in name)
    return plain and bool(name) and name[0] not in ".-" and len(name.encode()) <= MAX_BYTES


def test_usual_topics_stay_readable() -> None:
    names = file_names(["vehicle_attitude", "sensor_accel[1]", "/camera/front/image_raw", "~text"], ".csv")
    assert list(names.values()) == [
        "vehicle_attitude.csv",
        "sensor_accel-1.csv",
        "camera.front.image_raw.csv",
        "_text.csv",
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ""])
def test_hostile_topics_stay_safe_and_distinct(suffix: str) -> None:
    names = file_names(HOSTILE, suffix)
    assert list(names) == HOSTILE
    assert all(is_safe(name) and name.endswith(suffix) for name in names.values())
    assert len({name.casefold() for name in names.values()}) == len(HOSTILE)
    stems = {name.split(".")[0].lower() for name in names.values()}
    assert not stems & {"con", "nul", "aux", "com1", "manifest"}


def test_names_that_look_like_generated_ones_stay_distinct() -> None:
    first = file_names(["a/b", "a.b"])
    again = file_names(["a/b", "a.b", *first.values()])
    assert len({name.casefold() for name in again.values()}) == 4


def test_random_names_stay_distinct() -> None:
    rng = random.Random(1)
    topics = list({"".join(rng.choices("aA./\\[]1~-_ é\x00", k=rng.randrange(6))) for _ in range(3000)})
    names = file_names(topics, ".csv")
    assert len({name.casefold() for name in names.values()}) == len(topics)
    assert all(is_safe(name) for name in names.values())


def test_attachments_keep_their_suffix() -> None:
    names = attachment_names(
        ["console.txt", "Console.TXT", "../../evil.bin", "x.xz", "noend", ".bashrc", "a.b/c"]
    )
    assert names["x.xz"] == "x.xz"
    assert names["noend"] == "noend"
    assert names["../../evil.bin"].endswith(".bin")
    assert all(is_safe(name) for name in names.values())
    assert len({name.casefold() for name in names.values()}) == 7
