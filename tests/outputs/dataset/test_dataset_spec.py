"""Specifications of training data: what they mean, and how mistakes are reported."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from logreel.errors import UsageError
from logreel.outputs.dataset.spec import read_spec

GOOD = """
rate = "29.97Hz"
task = "x"

[sync]
max_error = "20ms"
method = "linear"

[episodes]
list = [{ log = "a*", start = "+1s", end = 5 }]
min_length = "2s"

[features.action]
topic = "/joints"
fields = ["position[0:3]", "effort[1]"]
offset = "-10ms"

[features."observation.images.top"]
pictures = "/camera"
size = [64, 48]
max_error = 7
"""


def test_keys_have_their_meaning(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(GOOD)
    spec = read_spec(path)
    action, top = spec.features
    assert spec.rate == Fraction(2997, 100)
    assert action.fields == (*(f"/joints.position[{i}]" for i in range(3)), "/joints.effort[1]")
    assert (action.method, action.max_error, action.offset) == ("linear", 20_000_000, -10_000_000)
    # Pictures cannot be mixed.
    assert (top.method, top.max_error, top.size, top.dtype) == ("nearest", 7, (64, 48), "uint8")
    assert spec.episodes.rule == "list"
    assert spec.episodes.listed[0].is_for("/logs/a1.bag")
    assert not spec.episodes.listed[0].is_for("/logs/b1.bag")
    assert read_spec(spec) is spec


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("rate =", "rat =", "line 1: the specification: needs a rate"),
        ('"29.97Hz"', '"fast"', "line 2: rate: cannot read the rate 'fast'"),
        ('"29.97Hz"', "true", "line 2: rate: expected a rate"),
        (
            "max_error = 7",
            "max_eror = 7",
            r"line 21: features.observation.images.top.max_eror: .*'max_error'\?",
        ),
        (
            'method = "linear"',
            'method = "cubic"',
            "line 7: sync.method: 'cubic' is not possible: nearest, previous",
        ),
        ('max_error = "20ms"', 'max_error = "-1s"', "line 6: sync.max_error: '-1s' is less than nothing"),
        ('max_error = "20ms"\n', "\n", "line 13: features.action: needs max_error"),
        ('log = "a*"', "log = 1", "line 10: episodes.list.log: expected a text"),
        ("min_length", "band = 'armed'\nmin_length", "line 9: episodes: the rule 'band'"),
        (
            'pictures = "/camera"',
            "",
            "line 18: features.observation.images.top: needs either fields or pictures",
        ),
        ('pictures = "/camera"', 'pictures = "/camera"\nmethod = "linear"', "pictures are not interpolated"),
        ("[64, 48]", "[63, 48]", "line 20: .*size: expected width and height as even numbers"),
        ('"position[0:3]"', '"position[3:3]"', "there are no items in"),
        ("[features.action]", "[features.index]", "this name is used already"),
        ("[features.action]", "[features.'a/b']", "a name consists of letters"),
        ("[features.action]", "[features.observation]", "'observation' is a feature already"),
        ('task = "x"', 'task = "x', "no valid TOML: .*line 3"),
        (
            'offset = "-10ms"',
            'offset = "-10ms"\nextra = 1',
            "line 17: features.action.extra: no such key; there are",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, old: str, new: str, text: str) -> None:
    assert old in GOOD
    path = tmp_path / "x.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UsageError, match=text):
        read_spec(path)


def test_mapping_has_no_lines() -> None:
    with pytest.raises(UsageError, match=r"^features: needs a feature"):
        read_spec({"rate": 3, "sync": {"max_error": 1}})
    with pytest.raises(UsageError, match="expected a table, not 3"):
        read_spec({"rate": 3, "sync": 3})


def test_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(UsageError, match="more than 1 MiB"):
        read_spec(path)
