"""Edits change what they name, and nothing else; edits back give the log again."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logreel
from logreel.layout.nodes import Rest, Scalar, String, Struct
from logreel.ops.edit.edit import Edits
from logreel.ops.rewrite.streams import MessageBatch
from support.builders.contents import OWN_NAMES, SAMPLES, content, other_content, sample
from support.harness.examples import half
from support.oracles.genuine_rosbag import connections, genuine
from support.samples.ulog.builder import Builder

FEW = settings(
    max_examples=half(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
#: A time that all samples can store, in ns: ULog and CARLA have coarser ones.
COARSE = 125 * 10**6


@pytest.fixture(params=SAMPLES)
def log_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return sample(tmp_path, str(request.param))


def first_topic(log: logreel.Log) -> str:
    return next(ch.topic for ch in log.match(None) if len(ch) > 3 and "[" not in ch.topic)


def test_an_empty_recipe_gives_the_slice_of_everything(log_file: Path, tmp_path: Path) -> None:
    edited, sliced = tmp_path / f"edited{log_file.suffix}", tmp_path / f"sliced{log_file.suffix}"
    done = logreel.edit(log_file, edited)
    logreel.slice(log_file, sliced)
    assert edited.read_bytes() == sliced.read_bytes()
    assert (done.changes, done.notes, done.skipped) == ((), (), ())


@pytest.mark.parametrize("suffix", [s for s in SAMPLES if s not in OWN_NAMES])
@FEW
@given(new=st.text("abcdefgh_xyz0123", min_size=1, max_size=12).map(lambda name: f"n{name}"))
def test_renaming_there_and_back_is_the_identity(
    suffix: str, new: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("names")
    source = sample(folder, suffix)
    old = first_topic(logreel.open(source))
    there, back = folder / f"there{suffix}", folder / f"back{suffix}"
    done = logreel.edit(source, there, rename={old: new})
    assert [(one.kind, one.topic, one.what) for one in done.changes] == [("rename", old, new)]
    assert old not in logreel.open(there)
    assert len(logreel.open(there)[new]) == len(logreel.open(source)[old])
    logreel.edit(there, back, rename={new: old})
    assert content(back, "file") == content(source, "file")
    assert other_content(back) == other_content(source)


@pytest.mark.parametrize("suffix", SAMPLES)
@FEW
@given(steps=st.integers(1, 40))
def test_shifting_there_and_back_is_the_identity(
    suffix: str, steps: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("times")
    source, there, back = sample(folder, suffix), folder / f"there{suffix}", folder / f"back{suffix}"
    shift = steps * COARSE
    logreel.edit(source, there, shift=shift)
    old, new = logreel.open(source), logreel.open(there)
    # A recording of CARLA has times in seconds as floating-point numbers.
    slack = 1000 if suffix == ".rec" else 0
    for ch in old.match(None):
        assert np.abs(new[ch.topic].times - ch.times - shift).max(initial=0) <= slack
    logreel.edit(there, back, shift=-shift)
    if not slack:
        assert content(back, "file") == content(source, "file")
        assert other_content(back) == other_content(source)


def test_a_shift_of_stamps_leaves_log_times(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".bag"), tmp_path / "out.bag"
    done = logreel.edit(source, out, shift="2s", clock="header")
    old, new = logreel.open(source), logreel.open(out)
    assert {one.kind for one in done.changes} == {"shift"}
    np.testing.assert_array_equal(old["/imu"].times, new["/imu"].times)
    moved = new["/imu"]["header.stamp"].astype(np.int64) - old["/imu"]["header.stamp"].astype(np.int64)
    assert set(moved.tolist()) == {2 * 10**9}
    for name in ("angular_velocity.x", "header.seq"):
        np.testing.assert_array_equal(old["/imu"][name], new["/imu"][name])
    nested = [m.decode()["transforms"][0]["header"]["stamp"] for m in new["/tf"]]
    assert nested == [m.decode()["transforms"][0]["header"]["stamp"] + 2 * 10**9 for m in old["/tf"]]


def test_a_scale_stretches_times_from_the_start(log_file: Path, tmp_path: Path) -> None:
    out = tmp_path / f"out{log_file.suffix}"
    logreel.edit(log_file, out, scale=2.0)
    old, new = logreel.open(log_file), logreel.open(out)
    assert new.start == old.start
    topic = first_topic(old)
    due = old[topic].times - (old.start or 0)
    np.testing.assert_allclose(new[topic].times - (new.start or 0), 2 * due, atol=1000)


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".ulg"])
def test_stamps_become_log_times_and_log_times_become_stamps(suffix: str, tmp_path: Path) -> None:
    source = sample(tmp_path, suffix)
    topic, field = ("sensor_accel", "timestamp_sample") if suffix == ".ulg" else ("/imu", "header.stamp")
    unit = 1000 if suffix == ".ulg" else 1
    if suffix == ".bag":
        # Its stamps are its log times.
        logreel.edit(source, tmp_path / "moved.bag", shift="-20ms", clock="header")
        source = tmp_path / "moved.bag"
    old = logreel.open(source)[topic]
    stamps = old[field].astype(np.int64) * unit
    assert (stamps != old.times).any()
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    logreel.edit(source, one, restamp="header=log")
    new = logreel.open(one)[topic]
    np.testing.assert_array_equal(new[field].astype(np.int64) * unit, new.times)
    np.testing.assert_array_equal(new.times, old.times)
    logreel.edit(source, other, restamp="log=header")
    new = logreel.open(other)[topic]
    np.testing.assert_array_equal(new.times, stamps)
    np.testing.assert_array_equal(new[field].astype(np.int64) * unit, stamps)


@pytest.mark.parametrize(
    ("suffix", "old", "topics"),
    [(".bag", "odom", ["/odom", "/tf"]), (".mcap", "foot", ["/foot"]), (".mcap", "imu", ["/imu"])],
)
@pytest.mark.parametrize("new", ["b", "a_much_longer_name_of_the_frame"])
def test_frames_are_renamed_at_any_depth_and_back(
    suffix: str, old: str, topics: list[str], new: str, tmp_path: Path
) -> None:
    source, there, back = sample(tmp_path, suffix), tmp_path / f"there{suffix}", tmp_path / f"back{suffix}"
    done = logreel.edit(source, there, frame={old: new})
    assert [(one.kind, one.topic) for one in done.changes] == [("frame", topic) for topic in topics]
    for topic, ch in logreel.open(source).channels.items():
        for m, n in zip(ch, logreel.open(there)[topic], strict=True):
            due = json.dumps(m.decode(), default=repr)
            if topic in topics:
                due = due.replace(f'"{old}"', f'"{new}"')
            assert json.dumps(n.decode(), default=repr) == due
    logreel.edit(there, back, frame={new: old})
    assert content(back, "file") == content(source, "file")


def test_fields_become_zero_or_empty_and_others_stay(log_file: Path, tmp_path: Path) -> None:
    log, out = logreel.open(log_file), tmp_path / f"out{log_file.suffix}"
    tried = 0
    for ch in log.match(None):
        for name, node in [(f.name, f.node) for f in ch.layout.record.visible()][:12]:
            if not len(ch) or name in ("timestamp", "frame", "sample") or ch.topic == "frames":
                continue
            if name in ("pid", "n", "source_id", "compressed", "sensor_type", "sensor_name"):
                # Numbers outside of messages; names of sensors, which are names of channels.
                continue
            if not isinstance(node, Scalar | String | Struct | Rest) or tried > 8:
                continue
            tried += 1
            logreel.edit(log, out, zero=f"{ch.topic}.{name}", force=True)
            new = logreel.open(out)[ch.topic]
            for m, n in zip(ch, new, strict=True):
                due, found = m.decode(), n.decode()
                rows = list(zip(due.get("records", [due]), found.get("records", [found]), strict=True))
                for before, after in rows:
                    assert not any(leaves(after.pop(name)))
                    before.pop(name)
                    assert repr(after) == repr(before)
    assert tried


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


def test_topics_are_left_out(log_file: Path, tmp_path: Path) -> None:
    log, out = logreel.open(log_file), tmp_path / f"out{log_file.suffix}"
    names = [ch.topic for ch in log.match(None) if len(ch)][1:3]
    done = logreel.edit(log, out, drop_topic=names)
    assert [(one.kind, one.topic, one.messages) for one in done.changes] == [
        ("drop-topic", name, len(log[name])) for name in log if name in names
    ]
    assert not set(names) & set(logreel.open(out))


def test_a_pattern_renames_with_what_it_matched(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".bag"), tmp_path / "out.bag"
    names = [t for t in logreel.open(source) if not t.startswith("~")]
    logreel.edit(source, out, rename={"/*": "/robot/{}"})
    assert list(logreel.open(out)) == [f"/robot{name}" for name in names]
    logreel.edit(out, tmp_path / "back.bag", rename={"re:/robot/(.*)": "/{1}"})
    assert content(tmp_path / "back.bag", "file") == content(source, "file")
    logreel.edit(source, out, rename={"/tf": "/odom", "/odom": "/tf"}, force=True)
    assert len(logreel.open(out)["/odom"]) == len(logreel.open(source)["/tf"])


@pytest.mark.parametrize(
    ("recipe", "text"),
    [
        ({"rename": {"/no": "/x"}}, "no channel to be renamed '/no'"),
        ({"rename": {"/imu": "/odom"}}, "would both be called '/odom'"),
        ({"rename": {"/imu": "/x{}"}}, "has no wildcard or group"),
        ({"rename": {"re:(": "/x"}}, "not a regular expression"),
        ({"frame": {"no_such_frame": "x"}}, "no message names a frame 'no_such_frame'"),
        ({"drop_topic": "*"}, "no channel is left"),
        ({"drop_topic": "/no"}, "no channel '/no'"),
        ({"zero": "/imu"}, "expected topic.field"),
        ({"zero": "/imu.no"}, "no field 'no'"),
        ({"shift": "soon"}, "cannot read the length of time"),
        ({"scale": 0}, "expected a factor"),
        ({"clock": "wall"}, "expected both or log or header"),
        ({"restamp": "log"}, "expected header=log or log=header"),
        ({"restamp": "header=log", "shift": 1}, "goes with neither shift nor scale"),
        ({"shift": -(10**19)}, "beyond what 64 bits"),
        ({"set": {"who": "me"}}, "no place for metadata"),
        ({"unset": "compression"}, "describes the file itself"),
        ({"unset": "no"}, "no metadata 'no' to remove"),
        ({"redact": "names"}, "'names' cannot be redacted"),
        ({"redact": "images=remove"}, "images can be redacted by blank or drop"),
        ({"origin": "north"}, "expected latitude, longitude"),
        ({"attach": __file__}, "no place for attachments"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    recipe: dict[str, Any], text: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.bag"
    with pytest.raises(logreel.LogError, match=None) as caught:
        logreel.edit(sample(tmp_path, ".bag"), out, **recipe)
    assert isinstance(caught.value, logreel.UsageError | logreel.NotFoundError)
    assert text in str(caught.value)
    assert not out.exists()
    assert not list(tmp_path.glob("out*"))


def test_channels_with_own_names_cannot_be_renamed(tmp_path: Path) -> None:
    for suffix in sorted(OWN_NAMES):
        source = sample(tmp_path, suffix)
        out = tmp_path / f"out{suffix}"
        with pytest.raises(logreel.UsageError, match="names channels"):
            logreel.edit(source, out, rename={first_topic(logreel.open(source)): "other"})
        assert not out.exists()


def test_metadata_and_attachments_are_set_and_removed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    for suffix, key in (
        (".ulg", "sys_name"),
        (".mcap", "robot.name"),
        (".bddf", "acme:note"),
        (".rec", "map"),
    ):
        source, out = sample(tmp_path, suffix), tmp_path / f"out{suffix}"
        done = logreel.edit(source, out, set={key: "Ann"})
        assert [(one.kind, one.what) for one in done.changes] == [("set", key.partition(".")[0])]
        group, _, name = key.partition(".")
        value = logreel.open(out).metadata[group]
        assert (value[name] if name else value) == "Ann"
        others = [name for name in logreel.open(source).metadata if name != group]
        kept = logreel.open(out).metadata
        assert all(name in kept for name in others)
        assert content(out, "file") == content(source, "file")
        if suffix != ".rec":
            logreel.edit(out, tmp_path / f"less{suffix}", unset=[group])
            assert group not in logreel.open(tmp_path / f"less{suffix}").metadata
        if suffix in (".ulg", ".mcap"):
            logreel.edit(source, out, attach=tmp_path / "notes.txt", force=True)
            added = set(logreel.open(out).attachments) - set(logreel.open(source).attachments)
            assert [logreel.open(out).attachments[name].read() for name in added] == [b"hello"]


def test_connection_headers_of_a_bag_are_set(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".bag"), tmp_path / "out.bag"
    logreel.edit(source, out, set={"/imu:callerid": "/driver"})
    log = logreel.open(out)
    assert log["/imu"].metadata["callerids"] == ["/driver"]
    assert log["/odom"].metadata == logreel.open(source)["/odom"].metadata


def test_a_dry_run_says_the_same_and_writes_nothing(log_file: Path, tmp_path: Path) -> None:
    topic = first_topic(logreel.open(log_file))
    recipe: dict[str, Any] = {"shift": "1s", "drop_topic": [topic]}
    tried = logreel.edit(log_file, None, dry_run=True, **recipe)
    done = logreel.edit(log_file, tmp_path / f"out{log_file.suffix}", **recipe)
    assert tried.changes == done.changes
    assert (tried.written, done.written) == (False, True)
    assert len(list(tmp_path.iterdir())) == 2


def test_genuine_rosbag_reads_an_edited_bag(tmp_path: Path) -> None:
    genuine("sensor_msgs", "tf2_msgs")
    source, out = sample(tmp_path, ".bag"), tmp_path / "out.bag"
    logreel.edit(source, out, rename={"/imu": "/sensors/imu"}, frame={"imu_link": "body"}, drop_topic="/map")
    before, after = connections(source), connections(out)
    names = {one.topic: one for one in after}
    assert "/map" not in names
    for one in before:
        if one.topic == "/map":
            continue
        other = names["/sensors/imu" if one.topic == "/imu" else one.topic]
        assert one.times == other.times
        due = [p.replace(b"\x08\0\0\0imu_link", b"\x04\0\0\0body") for p in one.payloads]
        assert other.payloads == due


def test_pyulog_reads_an_edited_ulog(tmp_path: Path) -> None:
    pyulog = pytest.importorskip("pyulog")
    source, out = sample(tmp_path, ".ulg"), tmp_path / "out.ulg"
    logreel.edit(source, out, rename={"vehicle_attitude": "attitude"}, shift="2s", set={"sys_name": "Other"})
    before, after = pyulog.ULog(str(source)), pyulog.ULog(str(out))
    assert after.msg_info_dict["sys_name"] == "Other"
    old, new = before.get_dataset("vehicle_attitude").data, after.get_dataset("attitude").data
    np.testing.assert_array_equal(new["timestamp"], old["timestamp"] + 2_000_000)
    np.testing.assert_array_equal(new["q[0]"], old["q[0]"])


def test_the_mcap_library_reads_an_edited_mcap(tmp_path: Path) -> None:
    from support.builders.mcap_rows import library_rows

    source, out = sample(tmp_path, ".mcap"), tmp_path / "out.mcap"
    logreel.edit(source, out, rename={"/imu": "/x"}, shift="2s", clock="log")
    due = [
        ("/x" if topic == "/imu" else topic, time + 2 * 10**9, early + 2 * 10**9, number, data)
        for topic, time, early, number, data in library_rows(source.read_bytes())
    ]
    assert library_rows(out.read_bytes()) == due


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".ulg"])
@pytest.mark.parametrize("which", ["changed", "other"])
def test_a_difference_where_nothing_was_to_be_changed_is_noticed(
    suffix: str, which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, field = ("vehicle_attitude", "q") if suffix == ".ulg" else ("/imu", "angular_velocity")

    def broken(self: Edits, batch: MessageBatch) -> MessageBatch:
        batch = edited(self, batch)
        number = self.plan.log[topic].number
        mine = [n in self.editors for n in batch.channel] if which == "changed" else batch.channel != number
        rows = np.flatnonzero(mine)
        if not len(rows):
            return batch
        some = batch.payloads.in_one() if batch.payloads.which is not None else batch.payloads
        data, row = some.data.copy(), rows[-1]
        data[some.start[row] + some.size[row] - 1] ^= 0xFF
        return replace(batch, payloads=replace(some, data=data))

    edited = Edits._edited
    monkeypatch.setattr(Edits, "_edited", broken)
    with pytest.raises(logreel.LogError, match="the new file is not what it should be: messages of"):
        logreel.edit(sample(tmp_path, suffix), tmp_path / f"out{suffix}", zero=f"{topic}.{field}")
    assert not list(tmp_path.glob("out*"))


def test_an_edit_to_a_stream_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    check = Edits.verify
    monkeypatch.setattr(Edits, "verify", lambda self, *read: (seen.append(1), check(self, *read)))
    out = io.BytesIO()
    logreel.edit(sample(tmp_path, ".mcap"), out, scale=2.0)
    assert seen
    logreel.edit(sample(tmp_path, ".mcap"), tmp_path / "out.mcap", scale=2.0)
    assert out.getvalue() == (tmp_path / "out.mcap").read_bytes()


def test_a_message_that_cannot_be_decoded_is_left_out_and_reported(tmp_path: Path) -> None:
    text = "float64 x\nstring name\nfloat64 y\n"
    with logreel.create(tmp_path / "a.bag") as w:
        n = w.add_channel("/a", logreel.Schema("my/A", "ros1msg", text))
        for i in range(4):
            w.write(n, 10**18 + i, {"x": i, "name": "n" * i, "y": 5.0})
        w.write(n, 10**18 + 9, bytes(8) + b"\xff\xff\xff\x7f" + bytes(9))
    done = logreel.edit(tmp_path / "a.bag", tmp_path / "b.bag", zero="/a.y")
    assert len(done.skipped) == 1
    assert "1 messages of '/a' were left out" in done.skipped[0]
    assert logreel.open(tmp_path / "b.bag")["/a"]["y"].tolist() == [0.0] * 4


def test_several_files_are_refused(tmp_path: Path) -> None:
    source = sample(tmp_path, ".bag")
    parts = [one.path for one in logreel.split(source, tmp_path / "parts", every=5 * 10**8)]
    with pytest.raises(logreel.UsageError, match="several files cannot be edited as one log"):
        logreel.edit(parts, tmp_path / "out.bag", shift=1)


def test_stamps_that_mean_unknown_stay(tmp_path: Path) -> None:
    b = Builder(start_us=1_000_000).flags()
    b.format("rc:uint64_t timestamp;uint64_t timestamp_last_signal;").subscribe("rc", 0)
    for i, signal in enumerate((0, 5_000_000, 2**64 - 1)):
        b.data(0, struct.pack("<QQ", 2_000_000 + i, signal))
    (tmp_path / "a.ulg").write_bytes(bytes(b.bytes()))
    for recipe, due in (({"shift": "1s"}, 6_000_000), ({"scale": 2.0, "clock": "header"}, 9_000_000)):
        logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", force=True, **recipe)
        found = logreel.open(tmp_path / "b.ulg")["rc"]["timestamp_last_signal"].tolist()
        assert found == [0, due, 2**64 - 1]


def test_metadata_of_an_mcap_are_maps(tmp_path: Path) -> None:
    source = sample(tmp_path, ".mcap")
    with pytest.raises(logreel.UsageError, match=r"name an entry of the map: NAME\.KEY"):
        logreel.edit(source, tmp_path / "out.mcap", set={"robot": "Ann"})
    logreel.edit(
        source, tmp_path / "out.mcap", set={"robot.name": "Ann", "robot.place": "lab", "new": {"a": "b"}}
    )
    found = logreel.open(tmp_path / "out.mcap").metadata
    assert found["robot"] == {**logreel.open(source).metadata["robot"], "name": "Ann", "place": "lab"}
    assert found["new"] == {"a": "b"}
