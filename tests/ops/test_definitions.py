"""``logreel.definitions``: find, list and add known definitions."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError, NotFoundError, UnknownFormatError, UsageError
from logreel.schemas import ros1msg
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import START, Builder, version_2_0
from support.samples.rosbag.old import Topic, version_1_1

PAIR = "int32 a  # first\nint32 b\n"
OWN = "Pair[] pairs\nint32 n\n"
FULL = f"{OWN}\n{'=' * 80}\nMSG: own_msgs/Pair\n{PAIR}"
OWN_MD5 = ros1msg.parse(FULL, "own_msgs/Own").md5
PAYLOAD = struct.pack("<Iiiiii", 2, 1, 2, 3, 4, 9)
DECODED = {"pairs": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "n": 9}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's data folder, which is empty."""
    folder = tmp_path / "data"
    monkeypatch.setenv("LOGREEL_DATA", str(folder))
    return folder


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return a folder with one package of two types."""
    there = tmp_path / "share" / "own_msgs" / "msg"
    there.mkdir(parents=True)
    (there / "Own.msg").write_text(OWN)
    (there / "Pair.msg").write_text(PAIR)
    return tmp_path / "share"


def bag(text: str = "", md5: str = OWN_MD5) -> bytes:
    """Return a bag with one message of type own_msgs/Own; *text*: its definition."""
    return version_2_0([(Topic("/own", "own_msgs/Own", md5, text), START, PAYLOAD)], Builder())


# Find and list.


def test_a_type_is_found_with_all_versions() -> None:
    found = logreel.definitions.find("sensor_msgs/CameraInfo")
    assert [one.version[:8] for one in found] == ["c9a58c1b", "1b5cf7f9", "a48ffa77"]
    assert (found[0].language, found[0].path) == ("ros1msg", None)
    assert "ros/common_msgs" in found[0].source
    assert found[0].text.startswith("Header header\nuint32 height\n")


@pytest.mark.parametrize(
    "wanted", ["a48ffa77e74ab6901331e50745dff353", "A48FFA77E74AB6901331E50745DFF353", "a48ffa"]
)
def test_a_checksum_finds_all_types_that_have_it(wanted: str) -> None:
    found = {one.name for one in logreel.definitions.find(wanted)}
    assert found == {"sensor_msgs/CameraInfo", "image_msgs/CamInfo"}


def test_a_type_is_found_without_its_package_and_by_a_former_name() -> None:
    assert [one.name for one in logreel.definitions.find("NavSatFix")] == ["sensor_msgs/NavSatFix"]
    assert logreel.definitions.find("rostools/Header")[0].name == "roslib/Header"


def test_an_unknown_type_is_answered_with_similar_ones() -> None:
    with pytest.raises(NotFoundError, match="sensor_msgs/CameraInfo"):
        logreel.definitions.find("sensor_msgs/CamerInfo")
    with pytest.raises(KeyError):
        logreel.definitions.find("0" * 32)


def test_types_are_listed_by_pattern() -> None:
    names = [one.name for one in logreel.definitions.list("image_msgs/*")]
    assert names == ["image_msgs/CamInfo", "image_msgs/CompressedImage", "image_msgs/Image"]
    assert len(logreel.definitions.list()) > 330
    assert logreel.definitions.list("no_such/*") == []


# Add, and read logs by what was added.


def test_a_log_without_definition_is_read_by_one_that_was_added_from_a_folder(packages: Path) -> None:
    assert next(logreel.open(bag()).messages("/own")).decode() == {"data": PAYLOAD}
    done = logreel.definitions.add(packages)
    assert [one.name for one in done.added] == ["own_msgs/Own", "own_msgs/Pair"]
    assert (done.known, done.problems) == ((), ())
    log = logreel.open(bag())
    assert next(log.messages("/own")).decode() == DECODED
    assert log.problems == ()


def test_definitions_of_a_log_are_added(tmp_path: Path) -> None:
    (tmp_path / "with.bag").write_bytes(bag(FULL))
    assert [one.name for one in logreel.definitions.add(tmp_path / "with.bag").added] == ["own_msgs/Own"]
    assert next(logreel.open(bag()).messages("/own")).decode() == DECODED
    # Text and comments are kept, so that bags of version 1.1 find it by their checksum of the text.
    old = ros1msg.parse(FULL, "own_msgs/Own").md5_v1
    first = logreel.open(version_1_1([(Topic("/own", "own_msgs/Own", old), START, PAYLOAD)]))
    assert next(first.messages("/own")).decode() == DECODED


def test_an_mcap_without_schema_text_is_read_by_what_was_added(packages: Path, tmp_path: Path) -> None:
    from mcap.writer import Writer

    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("own_msgs/Own", "ros1msg", b"")
        channel = writer.register_channel("/own", "ros1", schema, {"md5sum": OWN_MD5})
        writer.add_message(channel, 1, PAYLOAD, 1)
        writer.finish()
    assert next(logreel.open(path).messages("/own")).decode() == {"data": PAYLOAD}
    logreel.definitions.add(packages)
    assert next(logreel.open(path).messages("/own")).decode() == DECODED


def test_a_definition_with_another_checksum_is_not_used(packages: Path) -> None:
    logreel.definitions.add(packages)
    log = logreel.open(bag(md5="0" * 32))
    assert next(log.messages("/own")).decode() == {"data": PAYLOAD}
    assert "only others than that of md5 0000" in log.problems[0].text


def test_an_open_log_is_a_source() -> None:
    with logreel.open(bag(FULL)) as log:
        assert [one.name for one in logreel.definitions.add(log).added] == ["own_msgs/Own"]


def test_what_is_known_already_is_not_added_again(packages: Path, data: Path) -> None:
    logreel.definitions.add(packages)
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*.txt")}
    again = logreel.definitions.add(packages, packages / "own_msgs" / "msg" / "Pair.msg")
    assert ([one.name for one in again.known], again.added) == (["own_msgs/Own", "own_msgs/Pair"], ())
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*.txt")} == before


def test_shipped_definitions_are_known_already(tmp_path: Path, data: Path) -> None:
    there = tmp_path / "std_msgs" / "msg"
    there.mkdir(parents=True)
    (there / "String.msg").write_text("# with a comment\nstring data\n")
    done = logreel.definitions.add(tmp_path / "std_msgs")
    assert ([one.name for one in done.known], done.added) == (["std_msgs/String"], ())
    assert not list(data.rglob("*.txt"))


def test_unusable_definitions_are_reported_and_others_added(packages: Path) -> None:
    (packages / "own_msgs" / "msg" / "Bad.msg").write_text("float64 x y\n")
    (packages / "own_msgs" / "msg" / "Lost.msg").write_text("other_msgs/Missing x\n")
    (packages / "own_msgs" / "msg" / "Self.msg").write_text("Self x\n")
    done = logreel.definitions.add(packages)
    assert [one.name for one in done.added] == ["own_msgs/Own", "own_msgs/Pair"]
    assert [text.partition(": ")[2] for text in done.problems] == [
        "own_msgs/Bad, line 1: expected a type and a name, found 'float64 x y'",
        "own_msgs/Lost needs other_msgs/Missing, whose definition is missing",
        "own_msgs/Self contains itself: own_msgs/Self has it as field x",
    ]


def test_a_definition_that_contradicts_its_log_is_not_added() -> None:
    with logreel.open(bag(FULL, "0" * 32)) as log:
        done = logreel.definitions.add(log)
    assert done.added == ()
    assert f"the definition has md5 {OWN_MD5}, the log states {'0' * 32}" in done.problems[0]


def test_files_that_are_neither_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "photo.jpg").write_bytes(bytes(100))
    with pytest.raises(UsageError, match=r"no \.msg"):
        logreel.definitions.add(tmp_path / "empty")
    with pytest.raises(UnknownFormatError):
        logreel.definitions.add(tmp_path / "photo.jpg")
    with pytest.raises(OSError, match=r"gone\.msg"):
        logreel.definitions.add(tmp_path / "gone.msg")
    with pytest.raises(UsageError, match="name files"):
        logreel.definitions.add()


def test_a_folder_that_cannot_be_written_is_named(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOGREEL_DATA", str(tmp_path / "file"))
    with pytest.raises(LogError, match="cannot be written"):
        logreel.definitions.add(packages)
    monkeypatch.setenv("LOGREEL_DATA", "off")
    with pytest.raises(LogError, match="LOGREEL_DATA is off"):
        logreel.definitions.add(packages)


def test_names_in_logs_do_not_become_paths_elsewhere(data: Path, tmp_path: Path) -> None:
    topic = Topic("/x", "../../../evil", "*", "int32 x\n")
    with logreel.open(version_2_0([(topic, START, b"1234")], Builder())) as log:
        done = logreel.definitions.add(log)
    assert (done.added, "is no type of ROS 1" in done.problems[0]) == ((), True)
    assert {path.name for path in tmp_path.rglob("*")} == set()


def test_added_definitions_survive_in_logs_that_are_written(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logreel.definitions.add(packages)
    logreel.slice(bag(), tmp_path / "out.bag")
    monkeypatch.setenv("LOGREEL_DATA", "off")
    log = logreel.open(tmp_path / "out.bag")
    assert next(log.messages("/own")).decode() == DECODED
    assert log["/own"].metadata["md5sum"] == OWN_MD5


# Command line.


def test_verb_adds_lists_and_finds(run: Run, packages: Path, data: Path) -> None:
    done = run("definitions", "add", packages)
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()] == ["own_msgs/Own", "own_msgs/Pair"]
    assert f"added 2 definitions; they are in {data}" in done.err
    listed = run("definitions", "list", "own_msgs/*", "image_msgs/Image")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [
        "own_msgs/Own",
        "own_msgs/Pair",
        "image_msgs/Image",
    ]
    found = run("definitions", "find", "own_msgs/Own")
    assert f"own_msgs/Own  (ros1msg, {OWN_MD5})" in found.out
    assert "  | int32 a  # first" in found.out


def test_verb_speaks_json(run: Run, packages: Path) -> None:
    added = run("definitions", "add", packages, "--json").json
    assert ([one["name"] for one in added["added"]], added["known"], added["problems"]) == (
        ["own_msgs/Own", "own_msgs/Pair"], [], []
    )  # fmt: skip
    found = run("definitions", "find", OWN_MD5, "--json").json["definitions"]
    assert [(one["name"], one["version"], one["text"]) for one in found] == [("own_msgs/Own", OWN_MD5, FULL)]
    assert "text" not in run("definitions", "list", "own*", "--json").json["definitions"][0]


def test_verb_reports_what_it_left_out_with_code_3(run: Run, packages: Path) -> None:
    (packages / "own_msgs" / "msg" / "Bad.msg").write_text("float64 x y\n")
    done = run("definitions", "add", packages)
    assert (done.code, "own_msgs/Bad, line 1" in done.err) == (3, True)


def test_verb_refuses_what_makes_no_sense(run: Run) -> None:
    assert run("definitions", "find").code == 2
    assert run("definitions", "add").code == 2
    assert run("definitions", "find", "no_such/Type").code == 2
    assert run("definitions", "show").code == 2
