"""Migration by columns gives the bytes of migration message by message."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import logreel
from logreel.ops.migrate.migrate import _Converter
from logreel.schemas.ros1msg import DefinitionRegistry, define, layout
from support.builders.rule_files import EVERY_KIND, every_kind_rules
from support.oracles.ros1 import random_payload

TOML = """
[[rule]]
type = "pkg/T"
to = "pkg/U"
rename = { text = "words", parts = "pieces" }
remove = ["u64"]
[rule.fields]
i8 = { type = "float32", scale = 0.1, offset = 3 }
u8 = { type = "int64" }
i16 = { type = "int32", scale = 3, offset = -1 }
u16 = { type = "uint8", overflow = "clamp" }
i32 = { type = "float64", scale = 2 }
u32 = { type = "int16", scale = 1e-6 }
i64 = { type = "float64" }
f32 = { type = "float64", scale = 0.5 }
f64 = { type = "int32", overflow = "clamp" }
list = { type = "float64[]", scale = 10 }
three = { type = "int16[3]", overflow = "clamp" }
seq = { from = "header.seq", type = "float32" }
extra = { type = "string", value = "é" }
numbers = { type = "int16[2]", value = [1, -2] }
"""


@pytest.mark.parametrize(
    ("name", "text", "fast"),
    [
        ("rules.bmr", every_kind_rules(), True),
        ("rules.bmr", every_kind_rules("if old_msg.flag: new_msg.i8 = -1"), False),
        ("rules.toml", TOML, True),
        ("rules.toml", TOML + "b = { from = 'flag', type = 'uint8' }\n", False),
    ],
)
def test_columns_give_the_same_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, fast: bool
) -> None:
    rng = random.Random(7)
    definition = define("pkg/T", EVERY_KIND, "*", DefinitionRegistry(known=False))
    source, rules = tmp_path / "in.bag", tmp_path / name
    rules.write_text(text)
    with logreel.create(source) as writer:
        number = writer.add_channel("/x", logreel.Schema("pkg/T", "ros1msg", definition.text))
        for n in range(60):
            writer.write(number, 10**18 + n, random_payload(layout(definition).root, rng))
    used = list[bool]()
    by_columns = _Converter._by_columns
    monkeypatch.setattr(
        _Converter,
        "_by_columns",
        lambda self, some: (made := by_columns(self, some), used.append(made is not None))[0],
    )
    logreel.migrate(source, tmp_path / "fast.bag", rules=rules)
    assert used == [fast]
    monkeypatch.setattr(_Converter, "_by_columns", lambda self, some: None)
    logreel.migrate(source, tmp_path / "slow.bag", rules=rules)
    one, other = (logreel.open(tmp_path / f"{which}.bag")["/x"] for which in ("fast", "slow"))
    assert len(one) > 0
    assert [bytes(m.data) for m in one] == [bytes(m.data) for m in other]


def test_one_message_that_does_not_fit_costs_only_itself(tmp_path: Path) -> None:
    source, rules = tmp_path / "in.bag", tmp_path / "rules.toml"
    rules.write_text('[[rule]]\ntype = "pkg/T"\n[rule.fields]\na = { type = "int16" }\n')
    with logreel.create(source) as writer:
        number = writer.add_channel("/x", logreel.Schema("pkg/T", "ros1msg", "float64 a\n"))
        for n in range(100):
            writer.write(number, n * 10**9, {"a": float("nan") if n == 50 else n * 1.5})
    done = logreel.migrate(source, tmp_path / "out.bag", rules=rules)
    assert done.skipped == ("1 messages of '/x' were left out: a: nan is no int16",)
    assert logreel.open(tmp_path / "out.bag")["/x"]["a"].tolist() == [
        round(n * 1.5) for n in range(100) if n != 50
    ]
