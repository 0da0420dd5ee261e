"""Safe file names for names with any characters."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import pytest

from logreel.errors import LogError
from logreel.log.scan import Attachment
from logreel.outputs.files import MAX_BYTES, attachment_names, extract, file_names

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


def hostile_names(count: int) -> list[str]:
    """Return different names that are alike after cleaning, of which some look like the result of cleaning others."""
    rng = random.Random(1)
    base = [
        "a.txt",
        "A.TXT",
        "a/b.txt",
        "a_b.txt",
        "../a.txt",
        "a\0.txt",
        "con",
        "aux.tar.gz",
        ".hidden",
        "-x.txt",
    ]
    base += [
        "x" * 300 + ".txt",
        "é.txt",
        "\udcff.txt",
        "a.txt.",
        ".txt",
        "txt",
        "",
        "a\nb",
        "~x",
        "_x",
        "a[1].txt",
    ]
    names = dict.fromkeys(base)
    while len(names) < count // 2:
        name = rng.choice(base)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(name) + 1)
            name = name[:at] + rng.choice("./\\ \0aA_-\n~") + name[at:]
        names[name] = None
    found = [*names, *attachment_names(names).values()]
    return list(dict.fromkeys(found))[:count]


def test_file_names_of_a_thousand_hostile_attachments_are_different(tmp_path: Path) -> None:
    names = hostile_names(1000)
    assert len(names) > 900
    files = attachment_names(names)
    assert set(files) == set(names)
    assert len({file.lower() for file in files.values()}) == len(names)
    contents = [Attachment(name, "text/plain", 0, partial(str(n).encode)) for n, name in enumerate(names)]
    # Each file is synced, which takes long.
    contents, names = contents[::8], names[::8]
    for force in (False, True):
        written = extract(contents, tmp_path / "out", force)
        assert len(os.listdir(tmp_path / "out")) == len(names)
        for n, name in enumerate(names):
            assert Path(written[name]).read_text() == str(8 * n)


def test_an_existing_file_stops_extraction_before_anything_is_written(tmp_path: Path) -> None:
    contents = [Attachment(name, "text/plain", 0, name.encode) for name in ("a.txt", "b.txt")]
    (tmp_path / "b.txt").write_text("mine")
    with pytest.raises(LogError, match="exists already"):
        extract(contents, tmp_path)
    assert os.listdir(tmp_path) == ["b.txt"]
