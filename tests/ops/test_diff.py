"""``logreel.diff`` and the verb."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.ops.inspect.diff import rank
from support.builders.contents import SAMPLES, real
from support.builders.crash import crash
from support.builders.planted import SECOND, Row, moved, rows, steady, ulog
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import START, drive
from support.samples.rosbag.builder import Builder as Bag
from support.samples.rosbag.old import Topic
from support.samples.ulog.builder import Builder


def names(changes: Any) -> dict[str, tuple[Any, Any]]:
    return {c.name: (c.a, c.b) for c in changes}


def compared(a: list[Row], b: list[Row], topic: str = "a") -> Any:
    (one,) = logreel.diff(ulog(a), ulog(b), topics=topic, messages=True).channels
    assert one.compared is not None
    return one.compared


@pytest.mark.parametrize("suffix", SAMPLES)
def test_a_log_does_not_differ_from_itself(suffix: str) -> None:
    found = logreel.diff(SAMPLES[suffix](), SAMPLES[suffix](), fields=True, messages=True)
    assert found.same
    assert found.as_dict()["same"] is True
    for ch in found.channels:
        assert ch.compared is not None
        assert ch.compared.equal == ch.messages[0] == ch.messages[1]


def test_real_logs_do_not_differ_from_themselves(shared: Path) -> None:
    for suffix in (".ulg", ".bag", ".bddf"):
        for path in real(shared, suffix)[:4]:
            assert logreel.diff(path, path, messages=True).same, path


def test_channels_of_only_one_log_are_listed() -> None:
    found = logreel.diff(ulog(steady(channels=3)), ulog([*steady(channels=2), *rows("x", [6 * SECOND])]))
    assert {ch.topic: ch.only for ch in found.channels} == {"a": None, "b": None, "c": "a", "x": "b"}
    assert [ch.messages for ch in found.channels if ch.only] == [(300, 0), (0, 1)]
    assert names(found.log)["messages"] == (900, 601)
    assert not found.same


def test_diff_compares_only_chosen_topics() -> None:
    a, b = ulog(steady(channels=3)), ulog(steady(channels=2))
    assert logreel.diff(a, b, topics=["a", "b"]).channels[0].same
    assert [ch.topic for ch in logreel.diff(a, b, exclude="[ab]").channels] == ["c"]
    with pytest.raises(logreel.TopicError):
        logreel.diff(a, b, topics="z")


def test_definitions_are_compared_as_unified_diff() -> None:
    (one,) = logreel.diff(
        ulog(rows("a", [SECOND])),
        ulog(
            rows(
                "a",
                [SECOND],
            ),
            "speed",
        ),
    ).channels
    lines = one.schema.splitlines()
    assert any(line.startswith("-") and "other" in line for line in lines)
    assert any(line.startswith("+") and "speed" in line for line in lines)
    assert not one.same


def test_metadata_parameters_and_attachments_are_compared() -> None:
    def log(gain: float, board: str, blob: bytes, more: bool) -> bytes:
        out = Builder(start_us=SECOND).flags().info("ver_hw", board).parameter("GAIN", gain)
        out.info_multiple("uint8_t[3] console", blob)
        if more:
            out.parameter("EXTRA", 3)
        return out.format("t:uint64_t timestamp;").subscribe("t", 0).bytes()

    one, two = log(0.5, "V5", b"abc", False), log(0.75, "V6", b"abd", True)
    found = logreel.diff(one, two)
    assert names(found.metadata)["ver_hw"] == ("V5", "V6")
    parameters = names(found.parameters)
    assert parameters["GAIN"] == (0.5, 0.75)
    assert parameters["EXTRA"] == (None, 3)
    assert logreel.diff(one, one).same


def test_fields_are_compared_on_request() -> None:
    a, b = steady(), [(t, time, value + 5 * (t == "b")) for t, time, value in steady()]
    assert logreel.diff(ulog(a), ulog(b)).same
    found = logreel.diff(ulog(a), ulog(b), fields=True)
    fields = {ch.topic: names(ch.fields) for ch in found.channels}
    assert list(fields["b"]) == ["value", "other"]
    assert (fields["b"]["value"][0]["max"], fields["b"]["value"][1]["max"]) == (299, 304)
    assert not fields["a"]


def test_messages_are_compared_on_request() -> None:
    sound = rows("a", range(SECOND, SECOND + 100))
    less = [row for row in sound if row[2] not in (10, 11, 50)]
    found = compared(sound, less)
    assert (found.equal, found.changed, found.only_a, found.only_b) == (97, 0, 3, 0)
    assert (found.first.what, found.first.time_ns, found.first.a, found.first.b) == (
        "only_a", (SECOND + 10) * 1000, 10, None,
    )  # fmt: skip
    found = compared(less, sound)
    assert (found.first.what, found.first.a, found.first.b, found.only_b) == ("only_b", None, 10, 3)
    other = [(t, time, -1 if n == 70 else n) for t, time, n in less]
    found = compared(sound, other)
    assert (found.equal, found.changed, found.only_a, found.only_b) == (96, 1, 3, 0)
    found = compared(less, other)
    assert (found.first.what, found.first.a, found.first.b) == ("changed", 67, 67)


def test_the_order_in_the_file_does_not_matter() -> None:
    sound = rows("a", range(SECOND, SECOND + 100))
    mixed = list(sound)
    random.Random(1).shuffle(mixed)
    assert compared(sound, mixed).same


def test_messages_of_equal_time_are_paired_in_order() -> None:
    """Compared with counts: with distinct contents, equal messages are those that both logs have."""
    rng = random.Random(5)
    for _ in range(30):
        a = [("a", SECOND + rng.randrange(12), rng.randrange(2)) for _ in range(rng.randrange(1, 25))]
        b = [row if rng.random() < 0.8 else ("a", row[1] + rng.randrange(3), 9) for row in a]
        found = compared(a, b)
        times = Counter(t for _, t, _ in a), Counter(t for _, t, _ in b)
        pairs = (times[0] & times[1]).total()
        assert found.equal + found.changed == pairs
        assert (found.only_a, found.only_b) == (len(a) - pairs, len(b) - pairs)
        turns: list[dict[tuple[int, int], int]] = []
        for some in (a, b):
            seen: Counter[int] = Counter()
            turns.append({})
            for _, time, value in some:
                turns[-1][time, seen[time]] = value
                seen[time] += 1
        assert found.equal == sum(turns[1].get(key) == value for key, value in turns[0].items())
        assert found.same == (found.equal == len(a) == len(b))


@pytest.mark.parametrize("compression", ["bz2", "lz4"])
def test_compression_does_not_make_messages_differ(compression: str) -> None:
    found = logreel.diff(drive(2.0), drive(2.0, compression, chunk_bytes=20_000), messages=True)
    assert all(ch.same for ch in found.channels)
    assert "compression" in names(found.metadata)


def test_logs_of_two_formats_are_compared_by_time() -> None:
    bag = Bag()
    number = bag.connection(Topic("shared", "std_msgs/Int32"))
    for n in range(20):
        bag.message(number, START + n * 10**9, struct.pack("<i", n))
    times = [START // 1000 + n * SECOND for n in range(2, 22)]
    found = logreel.diff(bag.bytes(), ulog(rows("shared", times)), messages=True)
    assert found.formats == ("rosbag", "ulog")
    (one,) = found.channels
    assert one.compared is not None
    assert (one.compared.by, one.compared.equal, one.compared.changed) == ("time", 0, 0)
    assert (one.compared.only_a, one.compared.only_b) == (20, 20)
    exact = [(time // 1000 * 1000, n) for n, time in enumerate(START + n * 10**9 for n in range(20))]
    bag = Bag()
    number = bag.connection(Topic("shared", "std_msgs/Int32"))
    for time, n in exact:
        bag.message(number, time, struct.pack("<i", n))
    found = logreel.diff(bag.bytes(), ulog(rows("shared", times)), messages=True)
    (one,) = found.channels
    assert one.compared is not None
    assert (one.compared.equal, one.compared.only_a, one.compared.only_b) == (18, 2, 2)


def test_diff_prints_differences_and_gives_exit_code_4(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(ulog(steady()))
    Path("b.ulg").write_bytes(ulog(moved(steady(), 450, 1, topics="b")))
    done = run("diff", "a.ulg", "a.ulg")
    assert (done.code, done.out, done.err) == (0, "a.ulg and a.ulg: no difference\n", "")
    done = run("diff", "a.ulg", "b.ulg", "-t", "[ab]", "--messages")
    assert done.code == 4
    lines = [line.split() for line in done.out.splitlines()]
    assert ["b", "300", "300", "end"] in lines
    assert ["b", "150", "0", "150", "150", "A[150]", "at", "6.500001", "s"] in lines
    told = run("diff", "a.ulg", "b.ulg", "--messages", "--json").json
    assert told["same"] is False
    (ch,) = [ch for ch in told["channels"] if ch["topic"] == "b"]
    assert ch["compared"]["first"] == {"what": "only_a", "time_ns": 6_500_001_000, "a": 150, "b": None}
    assert run("diff", "a.ulg", "b.ulg", "-x", "b", "-x", "~*", "--json").code in (0, 2, 4)
    assert run("diff", "a.ulg").code == 2
    assert run("diff", "a.ulg", "absent.ulg").code == 1
    assert "nearest" in run("diff", "a.ulg", "b.ulg", "-t", "aa").err


def flown(gain: float, mode: int, lines: list[tuple[int, str]], more: int = 0) -> bytes:
    """Return a log with parameters, metadata, an attachment and lines of text."""
    out = Builder(start_us=SECOND).flags().info("ver_hw", "V5").parameter("GAIN", gain).parameter("MODE", 1)
    for n in range(more):
        out.parameter(f"EXTRA_{n:02}", n)
    out.format("t:uint64_t timestamp;").subscribe("t", 0).data(0, struct.pack("<Q", SECOND))
    out.parameter("MODE", mode)
    for time, text in lines:
        out.text(6, time, text)
    return out.data(0, struct.pack("<Q", 2 * SECOND)).bytes()


HELLO = [(SECOND, "hello"), (SECOND + 1, "again"), (SECOND + 2, "again")]


def test_only_chosen_things_are_compared() -> None:
    a = flown(0.5, 2, HELLO)
    b = flown(0.75, 3, [*HELLO[:2], (SECOND + 5, "bye")], more=1)
    whole = logreel.diff(a, b)
    assert whole.only == ("log", "metadata", "params", "attachments", "topics")
    assert whole.text == ()
    for only in ("params", ["params", "text"], ("messages",), "topics", "metadata", "log", "attachments"):
        found = logreel.diff(a, b, only=only)
        names = {only} if isinstance(only, str) else set(only)
        assert set(found.only) == names
        assert found.parameters == (whole.parameters if "params" in names else ())
        assert found.metadata == (whole.metadata if "metadata" in names else ())
        assert found.log == (whole.log if "log" in names else ())
        assert bool(found.text) == ("text" in names)
        assert bool(found.channels) == (not names.isdisjoint({"topics", "messages"}))
        assert found.as_dict()["only"] == list(found.only)
    assert logreel.diff(a, b, only="attachments").same
    assert not logreel.diff(a, b, only="params").same
    assert logreel.diff(a, b, only="params", messages=True).only == ("params", "messages")
    for bad in ("parameters", ["params", "x"]):
        with pytest.raises(logreel.UsageError, match="what can be compared"):
            logreel.diff(a, b, only=bad)
    with pytest.raises(logreel.UsageError, match="fields are compared with the topics"):
        logreel.diff(a, b, only="params", fields=True)


def test_lines_of_text_are_paired_wherever_they_are() -> None:
    a, b = (
        flown(1, 1, HELLO),
        flown(1, 1, [(SECOND + 5, "again"), (SECOND + 6, "hello"), (SECOND + 7, "bye")]),
    )
    found = logreel.diff(a, b, only="text").text
    assert [(one.only, one.time_ns // 1000, one.text) for one in found] == [
        ("a", SECOND + 2, "again"), ("b", SECOND + 7, "bye"),
    ]  # fmt: skip
    assert logreel.diff(a, a, only="text").same


def test_the_text_of_real_logs_is_compared_as_multisets(shared: Path) -> None:
    a, b = (logreel.open(path) for path in real(shared, ".ulg")[:2])
    found = logreel.diff(a, b, only="text").text
    counts = [Counter((one.level, one.source, one.text) for one in log.text) for log in (a, b)]
    assert (
        Counter((one.level, one.source, one.text) for one in found if one.only == "a")
        == counts[0] - counts[1]
    )
    assert (
        Counter((one.level, one.source, one.text) for one in found if one.only == "b")
        == counts[1] - counts[0]
    )


def test_diff_prints_values_in_columns_that_fit_on_a_screen(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(flown(0.5, 2, HELLO))
    Path("b.ulg").write_bytes(flown(0.75, 3, HELLO[:1], more=30))
    done = run("diff", "a.ulg", "b.ulg", "--only", "params")
    lines = done.out.splitlines()
    assert done.code == 4
    assert lines[:3] == ["A  a.ulg  (ulog)", "B  b.ulg  (ulog)", ""]
    assert [line.split() for line in lines[3:6]] == [
        ["parameter", "A", "B"],
        ["GAIN", "0.5", "0.75"], ["MODE,", "changes", "2", "at", "1.000000", "s", "3", "at", "1.000000", "s"],
    ]  # fmt: skip
    assert lines[-1] == "… 12 more, --all"
    assert len(lines) == 25
    assert "{" not in done.out
    whole = run("diff", "a.ulg", "b.ulg", "--only", "params", "--all").out.splitlines()
    assert len(whole) == 36
    assert whole[-1].split() == ["EXTRA_29", "-", "29"]
    both = run("diff", "a.ulg", "b.ulg", "--only", "params,text", "--only", "log", "--json").json
    assert both["only"] == ["log", "params", "text"]
    assert len(both["parameters"]) == 32
    assert [one["text"] for one in both["text"]] == ["again", "again"]
    text = run("diff", "a.ulg", "b.ulg", "--only", "text").out.splitlines()
    assert [line.split() for line in text[3:]] == [
        ["only", "in", "time", "level", "text"],
        ["A", "1.000001", "s", "info", "again"],
        ["A", "1.000002", "s", "info", "again"],
    ]
    done = run("diff", "a.ulg", "b.ulg", "--only", "parms")
    assert (done.code, "'parms'" in done.err) == (2, True)


def test_the_difference_of_real_logs_fits_on_a_screen(run: Run, shared: Path) -> None:
    one, two = real(shared, ".ulg")[:2]
    for more in (
        [],
        ["--only", "topics"],
        ["--only", "messages"],
        ["--only", "metadata"],
        ["--only", "params"],
    ):
        lines = run("diff", one, two, *more).out.splitlines()
        assert len(lines) <= (60 if not more else 27), more
        # Names and three cells; the paths stand above.
        assert all(len(line) <= 150 for line in lines[2:]), more
        assert not any("{" in line or "[[" in line for line in lines[2:]), more


def test_fields_that_are_farthest_apart_come_first(run: Run, tmp_path: Path) -> None:
    paths = [tmp_path / "a.ulg", tmp_path / "b.ulg"]
    for path, made in zip(paths, (crash(sound=True), crash()), strict=True):
        path.write_bytes(made)
    found = logreel.diff(*paths, fields=True)
    attitude = next(ch for ch in found.channels if ch.topic == "vehicle_attitude")
    assert [change.name for change in attitude.fields] == ["q[0]", "q[1]"]
    done = run("diff", *map(str, paths), "--fields")
    lines = done.out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("field: min, mean, max, rms"))
    assert [line.split()[0] for line in lines[start + 1 : start + 5]] == [
        "vehicle_status.nav_state", "vehicle_attitude.q[0]", "battery_status.voltage_v", "vehicle_attitude.q[1]",
    ]  # fmt: skip
    ranks = [
        rank(path, apart) for path, apart in (("a.x", 0.1), ("a.x", 0.9), ("a.timestamp", 1.0), ("a.x", None))
    ]
    assert sorted(ranks) == [ranks[1], ranks[0], ranks[2], ranks[3]]
