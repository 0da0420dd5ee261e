"""Order of the files of one log, and what is noted between them."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.errors import UnknownFormatError, UsageError
from logreel.log.joined_log import JoinedLog
from logreel.log.part_checks import natural_key, numbers
from support.builders.sample_logs import short_flight
from support.samples.ulog.builder import Builder

POINT = logreel.Schema("geometry_msgs/Point", "ros1msg", "float64 x\nfloat64 y\nfloat64 z\n")
TWIST = logreel.Schema("geometry_msgs/Vector3", "ros1msg", "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n")
SECOND = 10**9


def bag(path: Path, *times: float, topic: str = "/point", schema: logreel.Schema = POINT) -> Path:
    """Write a bag with a message at each of *times*, in seconds."""
    fields = ("x", "y", "z", "w") if schema is TWIST else ("x", "y", "z")
    with logreel.create(path) as out:
        channel = out.add_channel(topic, schema)
        for time in times:
            out.write(channel, int(time * SECOND), dict.fromkeys(fields, time))
    return path


def codes(log: logreel.Log) -> list[str]:
    return [problem.code for problem in log.problems]


def test_files_are_ordered_by_their_start_whatever_their_order_and_names(tmp_path: Path) -> None:
    files = [
        bag(tmp_path / name, *times)
        for name, times in (("c.bag", (1, 2)), ("a.bag", (5, 6)), ("b.bag", (3, 4)))
    ]
    with logreel.open(files) as log:
        assert isinstance(log, JoinedLog)
        assert [Path(one.name).name for one in log.parts] == ["c.bag", "b.bag", "a.bag"]
        assert log["/point"]["x"].tolist() == [1, 2, 3, 4, 5, 6]
        assert not log.problems


def test_a_pattern_names_files_in_natural_order(tmp_path: Path) -> None:
    for n in (1, 2, 10):
        bag(tmp_path / f"part_{n}.bag", 5)
    assert sorted(["part_10.bag", "part_2.bag"], key=natural_key) == ["part_2.bag", "part_10.bag"]
    with logreel.open([f"{tmp_path}/part_*.bag"]) as log:
        assert isinstance(log, JoinedLog)
        # All have the same content, so they count once.
        assert [Path(one.name).name for one in log.parts] == ["part_1.bag"]
        assert codes(log) == ["duplicate-part"] * 2
    with pytest.raises(UsageError, match="no file matches"):
        logreel.open(f"{tmp_path}/none_*.bag")


def test_a_file_with_the_characters_of_a_pattern_is_that_file(tmp_path: Path) -> None:
    with logreel.open(bag(tmp_path / "a[1].bag", 1)) as log:
        assert not isinstance(log, JoinedLog)


def test_one_file_in_a_list_is_that_file(tmp_path: Path) -> None:
    with logreel.open([bag(tmp_path / "a.bag", 1)]) as log:
        assert not isinstance(log, JoinedLog)
    with pytest.raises(UsageError, match="no file to open"):
        logreel.open([])


def test_a_folder_or_a_pattern_alone_is_refused_because_its_files_are_many_logs(tmp_path: Path) -> None:
    bag(tmp_path / "out_0.bag", 1)
    bag(tmp_path / "out_1.bag", 1.5)
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "out_0.bag.logreel-index").write_bytes(b"no log")
    for name in (str(tmp_path), f"{tmp_path}/*.bag"):
        with pytest.raises(UsageError, match=r"2 logs, and not a log; .*open\(\['"):
            logreel.open(name)
        with logreel.open([name]) as log:
            assert log["/point"]["x"].tolist() == [1, 1.5]
    with pytest.raises(UsageError, match="2 logs, and not a log"):
        logreel.stats(tmp_path)
    with pytest.raises(UnknownFormatError, match="no log of a known format"):
        logreel.open(_empty(tmp_path))


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_a_file_that_is_given_twice_counts_once_and_is_noted(tmp_path: Path) -> None:
    one, two = bag(tmp_path / "a.bag", 1, 2), bag(tmp_path / "b.bag", 3)
    copy = shutil.copy(one, tmp_path / "copy.bag")
    with logreel.open([one, two, one, copy]) as log:
        assert len(log["/point"]) == 3
        assert codes(log) == ["duplicate-part", "duplicate-part"]
        assert "given more than once" in log.problems[0].text
        assert "copy.bag has the same content as" in log.problems[1].text
        assert not any(problem.lost for problem in log.problems)


def test_missing_numbers_and_silences_between_numbered_files_are_noted(tmp_path: Path) -> None:
    files = [bag(tmp_path / f"out_{n}.bag", n, n + 0.5) for n in (0, 1, 2)]
    with logreel.open(files) as log:
        assert codes(log) == []
    files[1].unlink()
    with logreel.open([f"{tmp_path}/out_*.bag"]) as log:
        assert codes(log) == ["missing-part"]
        assert "number 1 is missing" in log.problems[0].text
    late = bag(tmp_path / "out_1.bag", 9, 10)
    with logreel.open([files[0], late]) as log:
        assert codes(log) == ["part-gap"]
    with logreel.open([files[0], files[2], late]) as log:
        assert "part-order" in codes(log)


def test_dates_in_names_do_not_count_as_numbers_of_files(tmp_path: Path) -> None:
    files = [bag(tmp_path / f"2024-05-01-10-{minute}-00.bag", minute) for minute in (10, 40, 55)]
    assert numbers([str(file) for file in files]) is None
    with logreel.open(files) as log:
        assert not log.problems


def test_files_that_overlap_are_ordered_by_time_and_noted(tmp_path: Path) -> None:
    one = bag(tmp_path / "robot.bag", 1, 3, 5)
    two = bag(tmp_path / "base.bag", 2, 3, 4, 6)
    logreel.merge([one, two], tmp_path / "merged.bag", anyway=True)
    with logreel.open([two, one], anyway=True) as log, logreel.open(tmp_path / "merged.bag") as merged:
        assert codes(log) == ["part-overlap"]
        point, due = log["/point"], merged["/point"]
        assert point["x"].tolist() == due["x"].tolist() == [1, 2, 3, 3, 4, 5, 6]
        assert point.times.tolist() == due.times.tolist()
        assert point.to_arrow().to_pylist() == due.to_arrow().to_pylist()
        assert (
            log.table("/point", start="+1.5s", end="+4s").to_pylist()
            == merged.table("/point", start="+1.5s", end="+4s").to_pylist()
        )
        assert point[["x"]].to_pylist() == due[["x"]].to_pylist()
        assert [m.decode() for m in point] == [m.decode() for m in due]
        assert [m.decode() for m in point[1:5]] == [m.decode() for m in due[1:5]]
        assert [m.decode()["x"] for m in log.messages(reverse=True)] == [6, 5, 4, 3, 3, 2, 1]
        assert logreel.stats(log)[0].as_dict() | {"bytes": 0} == logreel.stats(merged)[0].as_dict() | {
            "bytes": 0
        }
        batches = [row for batch in point.batches(rows=2) for row in batch.to_pylist()]
        assert batches == point.to_arrow().to_pylist()


def test_files_recorded_side_by_side_without_common_channels_are_no_problem(tmp_path: Path) -> None:
    one, two = bag(tmp_path / "a.bag", 1, 3), bag(tmp_path / "b.bag", 2, 4, topic="/other")
    with logreel.open([one, two]) as log:
        assert not log.problems
        assert [m.channel.topic for m in log.messages(order="file")] == ["/point", "/other"] * 2


@pytest.mark.parametrize(
    ("first", "second", "noted"),
    [
        # Seconds of two files; at most one second and half of the longer file is slight.
        ((0, 5, 10), (9.995, 15), []),
        ((0, 5, 10), (9, 15), []),
        ((0, 5, 10), (8.9, 15), ["part-overlap"]),
        ((0, 0.5), (0.25, 0.4), []),
        ((0, 0.5), (0.2, 0.4), ["part-overlap"]),
        ((0, 5, 10), (9.5,), []),
        ((0, 5, 10), (4,), ["part-overlap"]),
    ],
)
def test_slight_overlaps_are_no_problem(
    tmp_path: Path, first: tuple[float, ...], second: tuple[float, ...], noted: list[str]
) -> None:
    files = [
        bag(tmp_path / "a.bag", *(t + 1 for t in first)),
        bag(tmp_path / "b.bag", *(t + 1 for t in second)),
    ]
    with logreel.open(files, anyway=True) as log:
        assert codes(log) == noted
        assert log["/point"]["x"].tolist() == sorted(t + 1 for t in (*first, *second))


def test_the_overlap_of_a_file_within_another_is_that_file(tmp_path: Path) -> None:
    files = [bag(tmp_path / "a.bag", 1, 100), bag(tmp_path / "b.bag", 10, 13)]
    with logreel.open(files, anyway=True) as log:
        (problem,) = log.problems
        assert "overlap by 3.0 s" in problem.text


@pytest.mark.parametrize(("later", "noted"), [(0.5, False), (1.5, True)])
def test_a_lower_number_that_begins_slightly_later_is_no_problem(
    tmp_path: Path, later: float, noted: bool
) -> None:
    one = bag(tmp_path / "out_1.bag", 10, 14)
    zero = bag(tmp_path / "out_0.bag", 10 + later, 18 + later)
    with logreel.open([zero, one], anyway=True) as log:
        assert ("part-order" in codes(log)) == noted


def test_overlapping_messages_of_any_size_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    text = logreel.Schema("std_msgs/String", "ros1msg", "string data\n")
    rng, files = np.random.default_rng(3), []
    for n in range(3):
        path = tmp_path / f"{n}.bag"
        with logreel.create(path) as out:
            channel = out.add_channel("/text", text)
            # Some messages are out of order within their file.
            for time in rng.integers(0, 1000, 400).tolist():
                out.write(channel, SECOND + time, {"data": f"{n} {time} " + "x" * (time % 50)})
        files.append(path)
    logreel.merge(files, tmp_path / "merged.bag", anyway=True)
    with logreel.open(files, anyway=True) as log, logreel.open(tmp_path / "merged.bag") as merged:
        same = lambda one: sorted((m.time, bytes(m.data)) for m in one.messages())  # noqa: E731
        assert same(log) == same(merged)
        table, due = log.table("/text"), merged.table("/text")
        assert table.column("time").to_pylist() == due.column("time").to_pylist()
        assert sorted(table.column("data").to_pylist()) == sorted(due.column("data").to_pylist())
        assert table.column("data").to_pylist() == [m.decode()["data"] for m in log["/text"]]
        assert logreel.check(log).findings is not None


def test_a_topic_with_two_definitions_becomes_two_channels_as_in_a_merge(tmp_path: Path) -> None:
    files = [bag(tmp_path / "a.bag", 1), bag(tmp_path / "b.bag", 2, schema=TWIST)]
    logreel.merge(files, tmp_path / "merged.bag")
    with logreel.open(files, anyway=True) as log, logreel.open(tmp_path / "merged.bag") as merged:
        assert list(log) == list(merged) == ["/point", "/point[1]"]
        assert codes(log) == ["part-definition"]
        assert log["/point[1]"]["w"].tolist() == [2]
        logreel.slice(log, tmp_path / "slice.bag", topics="/point[[]1]")
        with logreel.open(tmp_path / "slice.bag") as part:
            assert [len(ch) for ch in part.values()] == [1]


def test_files_of_different_formats_are_refused_with_the_way_out(tmp_path: Path) -> None:
    ulg = tmp_path / "a.ulg"
    ulg.write_bytes(short_flight())
    with pytest.raises(UsageError, match="merge them into an MCAP first"):
        logreel.open([ulg, bag(tmp_path / "b.bag", 1)])


def test_a_length_of_time_shifts_the_clock_of_later_files_as_in_a_merge(tmp_path: Path) -> None:
    from support.samples.ulog.builder import flight

    one, two = tmp_path / "a.ulg", tmp_path / "b.ulg"
    one.write_bytes(short_flight())
    data = flight(3.0)
    two.write_bytes(data)
    merged = logreel.merge([one, two], tmp_path / "m.ulg", align="+100s")
    with logreel.open([one, two], align="+100s") as log, logreel.open(tmp_path / "m.ulg") as due:
        assert log.message_count == merged.messages == due.message_count
        assert [m.time for m in log.messages()] == [m.time for m in due.messages()]
        assert (log.start, log.end) == (due.start, due.end)
        for topic in ("sensor_combined", "vehicle_attitude"):
            assert log.table(topic).column("time").equals(due.table(topic).column("time"))


#: UTC at boot of the first recording, in seconds.
BOOT = 1_700_000_000


def clocked(path: Path, boot: int, first: int) -> Path:
    """Write a ULog of two seconds of a machine that started at *boot*, a UTC time in s; *first*: s from then on."""
    out = Builder(start_us=first * 10**6).flags().info("uint64_t boot_time_utc_us", boot * 10**6)
    out.format("tick:uint64_t timestamp;float v;").subscribe("tick", 0)
    for n in range(20):
        out.data(0, struct.pack("<Qf", first * 10**6 + n * 10**5, first + n))
    path.write_bytes(out.text(6, first * 10**6 + 10**6, f"at {first} s").bytes())
    return path


@pytest.mark.parametrize("align", ["utc", "start", "+3s", "+95s"])
@pytest.mark.parametrize("boots", [(0, 500), (0, 90), (0, -500), (0, 30)], ids=str)
def test_clocks_of_different_starts_are_aligned_as_in_a_merge(
    tmp_path: Path, boots: tuple[int, int], align: str
) -> None:
    files = [
        clocked(tmp_path / f"log_{n}.ulg", BOOT + boot, first)
        for n, (boot, first) in enumerate(zip(boots, (100, 10), strict=True))
    ]
    with logreel.open(files, align=align) as log:
        assert isinstance(log, JoinedLog)
        # A merge keeps the clock of the log given first: with "utc" that of the file that begins first here.
        given = [one.name for one in log.parts] if align == "utc" else files
        logreel.merge(given, tmp_path / "merged.ulg", align=align)
        with logreel.open(tmp_path / "merged.ulg") as merged:
            assert (log.start, log.end, log.epoch) == (merged.start, merged.end, merged.epoch)
            assert log.utc_offset == merged.utc_offset
            assert [m.time for m in log.messages()] == [m.time for m in merged.messages()]
            assert [line.time for line in log.text] == [line.time for line in merged.text]
            for utc in (False, True):
                ours, theirs = (one.table("tick", utc=utc) for one in (log, merged))
                assert ours["time"].equals(theirs["time"])
                assert ours["v"].equals(theirs["v"])
        one, two = ((part.utc_offset or 0) - shift for part, shift in zip(log.parts, log.shifts, strict=True))
        assert one == two or align != "utc"
        assert ("part-clock" in codes(log)) == (abs(one - two) > 60 * SECOND)


def test_clocks_of_different_starts_are_noted_unless_they_are_aligned(tmp_path: Path) -> None:
    files = [clocked(tmp_path / "a.ulg", BOOT, 100), clocked(tmp_path / "b.ulg", BOOT + 500, 110)]
    with logreel.open(files, anyway=True) as log:
        (problem,) = log.problems
        assert problem.code == "part-clock"
        assert f"{files[0]} and {files[1]} differ by 8 min 20 s" in problem.text
    with logreel.open(files, align="utc") as log:
        assert codes(log) == []
    files[1] = clocked(tmp_path / "c.ulg", BOOT + 30, 110)
    with logreel.open(files) as log:
        # Clocks of one start drift.
        assert codes(log) == []


def test_problems_of_a_file_name_it(tmp_path: Path) -> None:
    whole = bag(tmp_path / "a.bag", *range(1, 50))
    torn = tmp_path / "b.bag"
    data = bag(tmp_path / "c.bag", *range(60, 90)).read_bytes()
    torn.write_bytes(data[: len(data) * 2 // 3])
    with logreel.open([whole, torn]) as log:
        (problem, *_) = [p for p in log.problems if p.lost or p.file]
        assert problem.file == str(torn)
        assert problem.text.startswith(f"{torn}: ")
        assert problem.as_dict()["file"] == str(torn)
        assert "file" not in logreel.Problem("x", 0, 0, False, "y").as_dict()
        with pytest.raises(UsageError, match="recovered one by one"):
            logreel.recover(log, tmp_path / "r.bag")


def test_strict_refuses_parts_with_problems(tmp_path: Path) -> None:
    one = bag(tmp_path / "out_0.bag", 1)
    two = bag(tmp_path / "out_2.bag", 3)
    with pytest.raises(logreel.DamagedError, match="missing"):
        logreel.open([one, two], strict=True)


def test_logs_of_bytes_and_open_logs_are_joined_too(tmp_path: Path) -> None:
    one = bag(tmp_path / "a.bag", 1).read_bytes()
    with logreel.open(bag(tmp_path / "b.bag", 2)) as two, logreel.open([one, two]) as log:
        assert log["/point"]["x"].tolist() == [1, 2]
        with pytest.raises(logreel.LogError, match="another process"):
            log.__reduce__()


def test_functions_that_take_a_log_take_its_files(tmp_path: Path) -> None:
    files = [bag(tmp_path / f"out_{n}.bag", n + 1, n + 1.5) for n in range(3)]
    assert logreel.info(files).messages == 6
    assert logreel.info(files).as_dict()["files"] == [str(file) for file in files]
    assert logreel.stats(files)[0].messages == 6
    assert not logreel.check(files).worse("warn")
    assert logreel.slice(files, tmp_path / "s.bag").messages == 6
    assert logreel.sort(tmp_path / "s.bag", tmp_path / "t.bag").messages == 6
    assert sum(one.messages for one in logreel.split(files, tmp_path / "p", every=SECOND)) == 6
    assert logreel.convert(files, f"{tmp_path}/x.csv/").rows == 6
    assert logreel.diff(files, tmp_path / "s.bag", messages=True).same
    assert len(logreel.align(files, {"/point": ["x"]}, rate=1)) >= 3
    assert sum(1 for _ in logreel.play(files, rate=0)) == 6
    with logreel.open(files) as log:
        assert log.segment(1) is log
        assert [one.number for one in log.segments] == [1]
        with pytest.raises(UsageError, match="joined from 3 files"):
            log.segment(2)
        with pytest.raises(UsageError, match="does not grow"):
            next(iter(log.follow()))
        assert "3 files" in repr(log)
    assert "closed" in repr(log)


def test_parts_of_a_split_log_opened_together_are_the_log(tmp_path: Path) -> None:
    whole = tmp_path / "whole.ulg"
    whole.write_bytes(short_flight())
    logreel.split(whole, tmp_path / "parts", every=SECOND)
    with logreel.open(whole) as log, logreel.open([tmp_path / "parts"]) as parts:
        assert [(m.time, m.channel.topic, bytes(m.data)) for m in parts.messages()] == [
            (m.time, m.channel.topic, bytes(m.data)) for m in log.messages()
        ]
        assert parts.text == log.text
        assert set(parts) == set(log)


@pytest.mark.parametrize(("begins", "align"), [((0, 10), None), ((0, 2), None), ((0, 2), "+0.5s")])
def test_columns_of_fixed_size_are_gathered_from_all_files_together(
    begins: tuple[int, int], align: str | None, tmp_path: Path
) -> None:
    schema = logreel.Schema("wind", "ulog", "wind:uint64_t timestamp;uint64_t n;")
    names = [str(tmp_path / f"x_{n}.ulg") for n in range(2)]
    for name, begin in zip(names, begins, strict=True):
        with logreel.create(name) as w:
            wind = w.add_channel("wind", schema)
            for n in range(begin, begin + 5):
                w.write(wind, n * 10**9, {"n": n})
    log = logreel.open(names, align=align, anyway=True)
    table = log.tables("wind")["wind"]
    # One array, where tables of the files would be two.
    assert table.column("n").num_chunks == 1
    assert table.equals(log["wind"].to_arrow())
    logreel.merge(names, tmp_path / "all.ulg", align=align)
    merged = logreel.open(tmp_path / "all.ulg")["wind"].to_arrow()
    assert table.column("time").to_pylist() == merged.column("time").to_pylist()
    assert table.column("n").to_pylist() == merged.column("n").to_pylist()


def test_messages_stamped_before_their_file_begins_have_the_order_of_the_merge(tmp_path: Path) -> None:
    schema = logreel.Schema("wind", "ulog", "wind:uint64_t timestamp;uint64_t n;")
    names = [str(tmp_path / f"x_{n}.ulg") for n in range(3)]
    # Equal times within a file and in two files, and earlier ones in the middle of a file.
    times = [[5, 6, 6, 9, 7], [9, 6, 9, 8, 10, 2], [9, 10, 10, 1, 12]]
    for file, (name, some) in enumerate(zip(names, times, strict=True)):
        with logreel.create(name) as w:
            channels = [w.add_channel(topic, schema) for topic in ("wind", "wind[1]")]
            for n, time in enumerate(some):
                w.write(channels[n % 2], time * 10**9, {"n": 100 * file + n})
    log = logreel.open(names)
    logreel.merge(names, tmp_path / "all.ulg")
    merged = logreel.open(tmp_path / "all.ulg")

    def order(one: logreel.Log, how: str) -> list[tuple[str, int, int]]:
        return [(m.channel.topic, m.time, m.decode()["n"]) for m in one.messages(order=how)]

    assert order(log, "time") == order(merged, "time")
    for topic in merged:
        if not topic.startswith("~"):
            assert log[topic]["n"].tolist() == merged[topic]["n"].tolist()
    logreel.slice(log, tmp_path / "half.ulg", start="log:3s", end="log:10s")
    logreel.slice(merged, tmp_path / "other.ulg", start="log:3s", end="log:10s")
    halves = [logreel.open(tmp_path / name) for name in ("half.ulg", "other.ulg")]
    assert order(halves[0], "time") == order(halves[1], "time")
