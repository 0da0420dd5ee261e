"""Migration of logs: what stays, what is left out, other formats and versions, and what the verbs say."""

from __future__ import annotations

import io
import json
import math
import struct
from pathlib import Path

import pytest

import logreel
from support.builders.rule_files import HEADER, joined, rule, write_bag
from support.formats import sample_log
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import tiny

OLD, NEW = "int32 a\nstring text\n", "string text\nint32 b\n"
RULE = rule(("pkg/T", OLD), ("pkg/T", NEW), "new_msg.b = old_msg.a\nnew_msg.text = old_msg.text", name="T")


def bag(folder: Path, rows: list[dict] | None = None, **options: str) -> Path:
    (folder / "in.bag").unlink(missing_ok=True)
    rows = [{"a": n, "text": f"n{n}"} for n in range(5)] if rows is None else rows
    topics = {"/x": ("pkg/T", OLD, rows), "/y": ("pkg/U", "bool ok\n", [{}] * 3)}
    return write_bag(folder / "in.bag", topics, **options)


def file(folder: Path, text: str = RULE, name: str = "rules.bmr") -> Path:
    (folder / name).write_text(text)
    return folder / name


def run_rule(
    folder: Path, update: str, more: str = "", rows: list[dict] | None = None
) -> tuple[logreel.Log, tuple]:
    text = "import math\n" + rule(("pkg/T", OLD), ("pkg/T", NEW), update, more=more)
    out = folder / "out.bag"
    done = logreel.migrate(bag(folder, rows), out, rules=file(folder, text), force=True)
    return logreel.open(out), done.skipped


def test_connections_and_order_stay(tmp_path: Path) -> None:
    source = tmp_path / "in.bag"
    headers = [{"topic": "/x", "callerid": f"/node{n}", "latching": "1"} for n in range(2)]
    with logreel.create(source) as writer:
        schema = logreel.Schema("pkg/T", "ros1msg", OLD)
        first = writer.add_channel("/x", schema, {"headers": headers})
        other = writer.add_channel("/y", logreel.Schema("pkg/U", "ros1msg", "int8 n\n"))
        for n in range(20):
            writer.write(
                (first, other)[n % 2], (100 - n) * 10**9, {"a": n, "text": "x"} if n % 2 == 0 else {"n": n}
            )
    out = tmp_path / "out.bag"
    logreel.migrate(source, out, rules=file(tmp_path))
    before, after = logreel.open(source), logreel.open(out)
    for one, two in zip(before.messages(order="file"), after.messages(order="file"), strict=True):
        assert (one.time, one.channel.topic) == (two.time, two.channel.topic)
    assert after["/x"].metadata["headers"] == before["/x"].metadata["headers"]
    assert after["/x"].metadata["md5sum"] != before["/x"].metadata["md5sum"]
    assert after["/y"].schema == before["/y"].schema


def test_texts_that_are_no_utf8_keep_their_bytes(tmp_path: Path) -> None:
    source, raw = tmp_path / "in.bag", b"\xff\xfe caf\xe9"
    with logreel.create(source) as writer:
        number = writer.add_channel("/x", logreel.Schema("pkg/T", "ros1msg", OLD))
        writer.write(number, 10**18, struct.pack("<iI", 7, len(raw)) + raw)
    out = tmp_path / "out.bag"
    assert logreel.migrate(source, out, rules=file(tmp_path)).skipped == ()
    (message,) = logreel.open(out)["/x"]
    assert bytes(message.data) == struct.pack("<I", len(raw)) + raw + struct.pack("<i", 7)


def test_messages_that_a_rule_cannot_migrate_are_left_out_and_told(tmp_path: Path) -> None:
    log, skipped = run_rule(
        tmp_path, "new_msg.b = 12 // (old_msg.a - 2)\nassert old_msg.text != 'n4', 'four'"
    )
    assert log["/x"]["b"].tolist() == [-6, -12, 12]
    (text,) = skipped
    assert text.startswith("2 messages of '/x' were left out: ")
    assert "ZeroDivisionError" in text
    assert "four" in text
    assert "rules.bmr, line " in text
    log, skipped = run_rule(tmp_path, "new_msg.b = old_msg.a + 2**31 - 3")
    assert log["/x"]["b"].tolist() == [2**31 - 3, 2**31 - 2, 2**31 - 1]
    assert skipped[0].startswith("2 messages")


def test_methods_of_the_class_are_called_by_name_and_from_tables(tmp_path: Path) -> None:
    more = "\ttable = {'n1': 5}\n\tdef one(self, old_msg, new_msg):\n\t\tnew_msg.b = self.table.get(old_msg.text, -1)\n"
    update = "kinds = {('n1', 1): self.one, ('n2', 2): self.one}\nkey = (old_msg.text, old_msg.a)\n"
    update += "assert key in kinds, 'no way from %s %s' % key\nkinds[key](old_msg, new_msg)"
    log, skipped = run_rule(tmp_path, update, more)
    assert log["/x"]["b"].tolist() == [5, -1]
    assert "no way from n0 0" in skipped[0]


@pytest.mark.parametrize(
    "update",
    [
        "import os",
        "open('/etc/passwd')",
        "new_msg.b = (lambda: 1)()",
        "new_msg.__class__ = 1",
        "new_msg.b = old_msg.__class__.__name__",
        "new_msg.text = '{0.__class__}'.format(old_msg)",
        "while True: pass",
        "new_msg.b = getattr(old_msg, 'a')",
        "new_msg.b = eval('1')",
        "new_msg.text = 'x' * 10**9",
        "new_msg.b = 10 ** 10 ** 10",
        "new_msg.b = 1 << 10**9",
        "new_msg.text = '%999999999d' % 1",
        "for n in range(10**12): pass",
        "new_msg.b = sum([1 for a in range(10000) for b in range(10000)])",
        "new_msg.b = self.update(old_msg, new_msg)",
        "new_msg.b = [[[1]]]",
        "new_msg.nothing = 1",
        "new_msg.b = math.__loader__",
        "with self: pass",
    ],
)
def test_no_rule_reaches_anything_outside_its_messages(
    tmp_path: Path, update: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a rule is refused, or no message is migrated by it; nothing else happens."""
    monkeypatch.setattr("logreel.ops.migrate.bmr.MAX_STEPS", 10_000)
    source, out = bag(tmp_path, [{"a": 1}]), tmp_path / "out.bag"
    text = "import math\n" + rule(("pkg/T", OLD), ("pkg/T", NEW), update)
    rules, why = file(tmp_path, text), ""
    try:
        why = " ".join(logreel.migrate(source, out, rules=rules).skipped)
    except logreel.LogError as error:
        why = str(error)
    assert "rules.bmr" in why
    assert "line" in why
    if out.exists():
        assert "1 messages of '/x' were left out" in why
        assert not len(logreel.open(out).get("/x", ()))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print 'x'\n", "no Python 3"),
        ("x = 1\n", "there is no rule"),
        ("class A(MessageUpdateRule):\n    old_type = 'a/B'\n", "has no text 'old_full_text'"),
        (RULE.replace("valid = True", "valid = False"), "is not complete"),
        (RULE.replace("order = 0", "order = 'x'"), "no whole number"),
        (RULE.replace("def update(self, old_msg, new_msg)", "def update(self)"), "has no method update"),
        (RULE.replace("migrated_types = []", "migrated_types = [('Absent', 'Absent')]"), "does not use"),
        (
            RULE + RULE.replace("order = 0", "order = 1").replace("class T(", "class U("),
            "two rules for pkg/T",
        ),
        ("def f():\n    pass\n" * 3 + "class A: pass\n", "ClassDef is not read"),
        ("(" * 5000, "rules"),
    ],
)
def test_rule_files_that_cannot_be_used_are_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(logreel.LogError, match=why) as caught:
        logreel.migrate(bag(tmp_path), tmp_path / "out.bag", rules=file(tmp_path, text))
    assert "rules.bmr" in str(caught.value)


def test_a_rule_file_that_mixes_tabs_and_blanks_is_read(tmp_path: Path) -> None:
    text = RULE.replace("\tdef update", "        def update").replace(
        "\t\tnew_msg.text", "                new_msg.text"
    )
    done = logreel.migrate(bag(tmp_path), tmp_path / "out.bag", rules=file(tmp_path, text))
    assert done.changes[0].messages == 5


def test_types_that_use_a_migrated_type_follow_it(tmp_path: Path) -> None:
    part, other = "float64 vx\n", "float64 x\n"
    whole = joined(
        "Header header\nPart[] parts # all\npkg/Part one\n", std_msgs__Header=HEADER, pkg__Part=part
    )
    rows = [{"header": {"seq": 3}, "parts": [{"vx": 1}, {"vx": 2}], "one": {"vx": 3}}]
    source = write_bag(tmp_path / "in.bag", {"/x": ("pkg/Whole", whole, rows)})
    rules = file(tmp_path, rule(("pkg/Part", part), ("new/Point", other), "new_msg.x = old_msg.vx"))
    logreel.migrate(source, tmp_path / "out.bag", rules=rules)
    ch = logreel.open(tmp_path / "out.bag")["/x"]
    assert ch.schema.text.startswith("Header header\nnew/Point[] parts # all\nnew/Point one\n")
    assert ch[0].decode() == {
        "header": {"seq": 3, "stamp": 0, "frame_id": ""},
        "parts": [{"x": 1.0}, {"x": 2.0}],
        "one": {"x": 3.0},
    }


def test_an_mcap_with_messages_of_ros_is_migrated(tmp_path: Path) -> None:
    logreel.convert(bag(tmp_path), tmp_path / "in.mcap")
    done = logreel.migrate(tmp_path / "in.mcap", tmp_path / "out.mcap", rules=file(tmp_path))
    assert done.skipped == ()
    log = logreel.open(tmp_path / "out.mcap")
    assert (log.format, log["/x"].schema.text) == ("mcap", NEW)
    assert [m.decode() for m in log["/x"]] == [{"text": f"n{n}", "b": n} for n in range(5)]


@pytest.mark.parametrize("version", ["0", "1.0", "1.1", "1.2", "2.0"])
def test_bags_of_every_version_are_migrated(tmp_path: Path, version: str) -> None:
    source, out = tmp_path / "in.bag", tmp_path / "out.bag"
    source.write_bytes(tiny(version))
    before = logreel.open(source)
    ch = next(one for one in before.channels.values() if one.fields and one.layout.root.fields[0].name)
    name, field = ch.schema.name, ch.layout.root.fields[0].name
    toml = f'[[rule]]\ntype = "{name}"\nto = "new_msgs/Other"\nrename = {{ {field} = "renamed" }}\n'
    done = logreel.migrate(source, out, rules=file(tmp_path, toml, "rules.toml"))
    assert done.skipped == ()
    after = logreel.open(out)
    assert after.version == "2.0"
    assert after[ch.topic].schema.name == "new_msgs/Other"
    values = [{"renamed" if key == field else key: value for key, value in m.decode().items()} for m in ch]
    assert [m.decode() for m in after[ch.topic]] == values
    assert [m.time for m in after.messages(order="file")] == [m.time for m in before.messages(order="file")]


def test_several_files_as_one_log_are_migrated(tmp_path: Path) -> None:
    for n in range(2):
        bag(tmp_path, [{"a": 10 * n, "text": "x"}]).rename(tmp_path / f"{n}.bag")
    parts = [tmp_path / f"{n}.bag" for n in range(2)]
    done = logreel.migrate(parts, tmp_path / "out.bag", rules=file(tmp_path))
    assert logreel.open(tmp_path / "out.bag")["/x"]["b"].tolist() == [0, 10]
    assert [(one.topic, one.messages) for one in done.changes] == [("/x", 2)]


def test_a_stream_gets_the_same_log(tmp_path: Path) -> None:
    source, rules, stream = bag(tmp_path), file(tmp_path), io.BytesIO()
    done = logreel.migrate(source, stream, rules=rules)
    assert [(one.topic, one.messages) for one in done.changes] == [("/x", 5)]
    logreel.migrate(source, tmp_path / "out.bag", rules=rules)
    assert stream.getvalue() == (tmp_path / "out.bag").read_bytes()


def test_rule_files_of_the_first_releases_are_read(tmp_path: Path) -> None:
    """Constructs of the rule files in the repositories of ROS: helpers, class attributes, imports, tabs and blanks."""
    old, new = (
        "float32 th\n",
        joined("Header header\nfloat64[4] q\nfloat64[36] covariance\n", std_msgs__Header=HEADER),
    )
    more = """
        def quaternion(self, x, y, z):
                z /= 2.0
                values = [0.0,0.0,0.0,0.0]

                values[2], values[3] = math.sin(z), \\
                        math.cos(z)
                return values

        identity = [1.0] + 2*[0] + [1.0]

"""
    update = "import rospy\nnew_msg.header = self.get_new_class('Header')(0, rospy.Time(3,5), \"/map\")\n"
    update += "q = self.quaternion(0,0,old_msg.th)\nfor n in range(4):\n\tnew_msg.q[n] = q[n]\n"
    update += "#new_msg.x = 1\nnew_msg.covariance = 32*[0.0] + [x/2 for x in self.identity]"
    text = "import math\n\n" + rule(("pkg/Odom", old), ("nav/Odom", new), update, more=more)
    text = text.replace("\t\timport rospy", "                import rospy")
    source = write_bag(tmp_path / "in.bag", {"/x": ("pkg/Odom", old, [{"th": 1.0}, {"th": -2.0}])})
    done = logreel.migrate(source, tmp_path / "out.bag", rules=file(tmp_path, text))
    assert done.skipped == ()
    first, second = (m.decode() for m in logreel.open(tmp_path / "out.bag")["/x"])
    assert first["header"] == {"seq": 0, "stamp": 3 * 10**9 + 5, "frame_id": "/map"}
    assert second["q"] == pytest.approx([0, 0, math.sin(-1), math.cos(-1)])
    assert first["covariance"][32:] == [0.5, 0, 0, 0.5]


def wanted(folder: Path, text: str) -> Path:
    place = folder / "wanted" / "pkg" / "msg"
    place.mkdir(parents=True)
    (place / "T.msg").write_text(text)
    return folder / "wanted"


def test_the_verb_says_what_it_changed_and_what_is_missing(run: Run, tmp_path: Path) -> None:
    source, rules, to = bag(tmp_path), file(tmp_path), wanted(tmp_path, "string text\nint64 b\n")
    done = run("migrate", source, "-o", tmp_path / "out.bag", "--rules", rules, "--json")
    found = json.loads(done.out)
    assert done.code == 0
    (change,) = found["changes"]
    assert (change["topic"], change["new_type"], change["messages"]) == ("/x", "pkg/T", 5)
    assert change["rules"] == [f"{rules}:T"]
    missing = run("migrate", source, "-o", tmp_path / "x.bag", "--rules", rules, "--to", to)
    assert missing.code == 1
    assert "b was int32 and is int64" in missing.err
    assert "--partial" in missing.err
    assert not (tmp_path / "x.bag").exists()
    partial = run("migrate", source, "-o", tmp_path / "x.bag", "--rules", rules, "--to", to, "--partial")
    assert partial.code == 3
    assert "'/x' stays as it is" in partial.err
    assert (tmp_path / "x.bag").read_bytes() == source.read_bytes()
    template = tmp_path / "more.toml"
    options = ("--rules", rules, "--to", to, "--write-template", template)
    assert run("migrate", source, *options).code == 0
    assert run("migrate", source, *options).code == 1
    text = template.read_text()
    assert "valid = false" in text
    completed = text.replace("valid = false  # complete the fields below, then remove this line\n", "")
    template.write_text(completed.replace('b = { from = "b" }', 'b = { from = "b", scale = 2 }'))
    done = run("migrate", source, "-o", tmp_path / "y.bag", "--rules", rules, "--rules", template, "--to", to)
    assert done.code == 0, done.err
    assert logreel.open(tmp_path / "y.bag")["/x"]["b"].tolist() == [0, 2, 4, 6, 8]
    assert run("migrate", source).code == 2


def test_check_names_types_that_differ(run: Run, tmp_path: Path) -> None:
    source, rules, to = bag(tmp_path), file(tmp_path), wanted(tmp_path, "string text\nint64 b\n")

    def codes(*options: object) -> list[tuple[str, str]]:
        done = run("check", source, "--json", *options)
        return [
            (one["code"], one["topic"])
            for one in json.loads(done.out)["findings"]
            if one["code"][:4] == "type"
        ]

    assert codes() == []
    assert codes("--types") == [("type-unknown", "/x"), ("type-unknown", "/y")]
    assert codes("--rules", rules) == [("type-migrates", "/x"), ("type-unknown", "/y")]
    assert codes("--to", to) == [("type-rule-missing", "/x"), ("type-unknown", "/y")]
    old = "Header header\nfloat64 percentage\n"
    standard = {"/b": ("sensor_msgs/BatteryState", joined(old, std_msgs__Header=HEADER), [{}])}
    source = write_bag(tmp_path / "b.bag", standard)
    assert codes("--types") == [("type-differs", "/b")]


@pytest.mark.parametrize("name", ["robot.Motor", "robot.Status", "robot/msg/Foot"])
def test_messages_of_other_encodings_are_refused_or_reported(tmp_path: Path, name: str) -> None:
    source, out = tmp_path / "in.mcap", tmp_path / "out.mcap"
    source.write_bytes(sample_log("mcap"))
    rules = file(tmp_path, f'[[rule]]\ntype = "{name}"\nto = "x/Y"\n', "rules.toml")
    with pytest.raises(logreel.LogError, match="are not migrated in this format"):
        logreel.migrate(source, out, rules=rules)
    assert not out.exists()
    (text,) = logreel.migrate(source, out, rules=rules, partial=True).skipped
    assert "stays as it is: messages of encoding" in text
    assert logreel.open(out).message_count == logreel.open(source).message_count


@pytest.mark.parametrize("name", ["pkg/T", "pkg/Renamed"])
def test_a_rule_between_equal_definitions_is_not_run_and_named(tmp_path: Path, name: str) -> None:
    text = rule(("pkg/T", OLD), (name, OLD + "# a comment\n"), "new_msg.a = 2 * old_msg.a", name="Twice")
    done = logreel.migrate(bag(tmp_path), tmp_path / "out.bag", rules=file(tmp_path, text))
    log = logreel.open(tmp_path / "out.bag")
    assert log["/x"].schema.name == name
    assert log["/x"]["a"].tolist() == [0, 1, 2, 3, 4]
    (note,) = done.notes
    assert note.startswith("the values of '/x' stay as they are, ")
    assert "Twice is not run: pkg/T (" in note
    assert note.endswith("have the same definition")
