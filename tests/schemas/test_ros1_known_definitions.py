"""Known definitions: shipped ones with their history, and the user's folder."""

from __future__ import annotations

import os
import re
from importlib import resources

import pytest

from logreel.errors import DefinitionError, LogError
from logreel.schemas import catalogue as data_folder
from logreel.schemas.ros1msg import define, known, layout, parse, standard

#: Checksums in the names of the classes of the migration rules of common_msgs, which ROS computed.
OF_RULES = """
robot_msgs/PointCloud c47b5cedd2b77d241b27547ed7624840
robot_msgs/ChannelFloat32 61c47e4621e471c885edb248b5dcafd5
robot_msgs/Vector3 4a842b65f413084dc2b10fb484ea7f17
robot_msgs/QuaternionStamped e57f1e547e0e1fd13504588ffc8334e2
robot_msgs/Vector3Stamped 7b324c7325e683bf02a9b14b01090ec7
robot_msgs/PointStamped c63aecb41bfdfd6b7e1fac37c7cbe7bf
robot_msgs/Transform ac9eff44abf714214112b05d54a3cf9b
robot_msgs/TransformStamped e0b1e16e4f459246e737dca6251c020b
robot_msgs/PoseStamped d3812c3cbc69362b77dc0b19b345f8f5
robot_msgs/Twist 104c6ef591961bed596cfa30f858271c
robot_msgs/Polygon3D 290d2a9f8810ff59c2bf8ecc1fe478ec
robot_msgs/PoseDot a2c4de81995f15464ed26e3bae376045
robot_msgs/Wrench 31103fae9a9f6a2d32c8f5838aa25717
robot_msgs/PoseWithCovariance ecf54a1a25cdc75d7a5f2b4cddd77d27
robot_msgs/ParticleCloud 72adf954e515b41ca7d70e7e42f15fe8
robot_msgs/MapMetaData 10cfc8a2818024d3248802c00c95f11b
robot_msgs/OccGrid 97b32e1f188a9205cdc57db3617fc4ca
robot_msgs/Path f4bbbec105a3dc69d6c5974def547813
deprecated_msgs/RobotBase2DOdom c3caa47ad9e2bbe7b59c0cfdba67172f
image_msgs/CamInfo a48ffa77e74ab6901331e50745dff353
image_msgs/Image 97d4ca3868dc81af4a2403bcb6558cb0
sensor_msgs/Image 97d4ca3868dc81af4a2403bcb6558cb0
sensor_msgs/CameraInfo a48ffa77e74ab6901331e50745dff353
sensor_msgs/CompressedImage 9f25a34569b1b807704b985d4396ad35
sensor_msgs/PointCloud c47b5cedd2b77d241b27547ed7624840
laser_scan/LaserScan 90c7ef2dc6895d81024acba2ac42f369
mechanism_msgs/JointStates 6def7c223229ab1e340258092e485703
diagnostic_msgs/DiagnosticValue 250764bc9f6186841f2fd012ec0b7554
diagnostic_msgs/DiagnosticMessage a0876777999dce0cebd3c131da632df2
diagnostic_msgs/DiagnosticStatus 71cef332d5a23a49b5913222d03431df
diagnostic_msgs/KeyValue 160b8172585340ae9280191a0d54f07c
visualization_msgs/Marker 39a0c1293620decbc276ba135f4be147
visualization_msgs/Marker f623369ab613b38d06adf06ef4e1ef67
trajectory_msgs/JointTrajectoryPoint 84fd2dcf68773c3dc0e9db894f4e8b40
"""
#: Checksums in code that ROS generated, in public repositories.
OF_GENERATED_CODE = """
ackermann_msgs/AckermannDrive 3512e91b48d69674a0e86fadf1ea8231
ackermann_msgs/AckermannDriveStamped 1fd5d7f58889cefd44d29f6653240d0c
apriltag_ros/AprilTagDetectionArray 2b6c03434883a5c9897c13b5594dbd91
ar_track_alvar_msgs/AlvarMarkers 943fe17bfb0b4ea7890368d0b25ad0ad
can_msgs/Frame 64ae5cebf967dc6aae4e78f5683a5b25
dvs_msgs/EventArray 5e8beee5a6c107e504c2e78903c224b8
joy/Joy e3ef016fcdf22397038b36036c66f7c8
livox_ros_driver/CustomMsg e4d6829bdfe657cb6c21a746c86b21a6
mavros_msgs/Altitude 1296a05dc5b6160be0ae04ba9ed3a3fa
mavros_msgs/HomePosition fe09e06cf41e29a63fae614876d148fa
mavros_msgs/ManualControl c41e3298484ea98e05ac502ce55af59f
mavros_msgs/OverrideRCIn 73b27a463a40a3eda1f9fbb1fc86d6f3
mavros_msgs/PositionTarget dedb0081aaf8cb20209737746bb49117
mavros_msgs/RCIn 1c3eafdb5efbcda3c334e1788bbcfe39
mavros_msgs/RadioStatus 04e4a879bb2687140da50a1a821e2190
mavros_msgs/State 9e3d873fae342c8f48a8bd64c53d991e
mavros_msgs/State ce783f756cab1193cb71ba9e90fece50
mavros_msgs/StatusText 6cfd33cd09e4abf5841d7be3c770a969
mavros_msgs/Thrust c61da3a8868a8b502eaf0b0abd839f57
nmea_msgs/Sentence 9f221efc5f4b3bac7ce4af102b32308b
octomap_msgs/Octomap 9a45536b45c5e409cd49f04bb2d9999f
theora_image_transport/Packet 33ac4e14a7cff32e7e0d65f18bb410f3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the user's data folder, which is empty."""
    monkeypatch.setenv("LOGREEL_DATA", str(tmp_path))
    return tmp_path


def store(text: str, name: str = "acme_msgs/Thing", md5: str = "") -> str:
    """Store a definition under its checksum, or under another one; return that."""
    md5 = md5 or parse(text, name).md5
    data_folder.add("ros1msg", name, md5, text, {"source": "a test"})
    return md5


# Shipped definitions.


def test_every_shipped_definition_has_the_stated_checksum_and_a_source():
    stated = 0
    for name in known.names():
        for one in known.versions(name):
            assert one.definition.md5 == one.md5, one
            assert re.search(r"\(BSD|\(Apache|\(MIT|\(MPL|\(CC|\(GPL|\(LGPL", one.source), one
            layout(one.definition)
            stated += 1
    assert stated > 370


def test_no_shipped_definition_is_there_twice():
    for name in known.names():
        several = [one.md5 for one in known.versions(name)]
        assert len(several) == len(set(several)), name


@pytest.mark.parametrize(
    "line", [line for text in (OF_RULES, OF_GENERATED_CODE) for line in text.split("\n")[1:-1]]
)
def test_versions_that_public_code_names_are_known(line):
    name, md5 = line.split()
    assert [(one.name, one.md5) for one in known.find(name, md5)] == [(name, md5)]
    assert standard().find(name, md5).md5 == md5


def test_the_current_version_comes_first():
    assert known.latest("sensor_msgs/CameraInfo").md5 == "c9a58c1b0b154e0e6da7578cb991d214"
    assert [one.md5[:8] for one in known.find("sensor_msgs/CameraInfo")][1:] == ["1b5cf7f9", "a48ffa77"]
    assert known.latest("acme_msgs/Thing") is None


def test_former_names_of_a_type_are_found():
    assert known.latest("rostools/Header").name == "roslib/Header"


def test_one_lookup_reads_the_files_of_its_packages_only(monkeypatch):
    known._file.cache_clear()
    known._shipped.cache_clear()
    known.latest("turtlesim/Pose")
    assert known._file.cache_info().currsize == 1
    assert len(list(resources.files("logreel.schemas.ros1msg").joinpath("standard").iterdir())) > 30


def test_a_type_that_uses_an_earlier_version_gets_that_one():
    found = known.find("diagnostic_msgs/DiagnosticMessage")[0].definition
    assert [f.name for f in found.messages["diagnostic_msgs/DiagnosticStatus"].fields][-1] == "strings"


# The same checksum under another name.


def test_a_checksum_that_is_known_for_another_type_gives_its_fields_under_the_name_asked_for():
    md5 = known.latest("geometry_msgs/PoseStamped").md5
    found = define("acme_msgs/Where", "", md5)
    assert (found.name, found.md5) == ("acme_msgs/Where", md5)
    # Its fields are named by package, since another package would be looked in otherwise.
    assert found.text.split("\n")[:2] == ["Header header", "geometry_msgs/Pose pose"]
    assert parse(found.text, "acme_msgs/Where").md5 == md5


def test_an_unknown_checksum_of_a_known_type_is_refused():
    with pytest.raises(DefinitionError, match="only others than that of md5 0000"):
        define("std_msgs/String", "", "0" * 32)
    assert standard().find("std_msgs/String", "0" * 32) is None


@pytest.mark.parametrize("md5", ["", "*", "x" * 32, "../../etc/passwd"])
def test_text_that_is_no_checksum_finds_nothing(md5):
    assert known.with_md5(md5) == []


# The user's folder.


def test_definitions_of_the_folder_are_found_by_name_and_checksum(folder):
    md5 = store("float64 x\n")
    assert standard().find("acme_msgs/Thing").md5 == md5
    assert standard().find("acme_msgs/Thing", md5).text == "float64 x\n"
    assert known.latest("acme_msgs/Thing").source == "a test"
    assert "acme_msgs/Thing" in standard().names()
    assert [one.name for one in known.with_md5(md5)] == ["acme_msgs/Thing"]


def test_the_version_added_last_is_used_if_the_log_states_none(folder):
    first, second = store("float64 x\n"), store("float64 y\n")
    paths = list(data_folder.files("ros1msg", "acme_msgs/Thing"))
    os.utime(next(p for p in paths if p.stem == first), ns=(10**18, 10**18))
    os.utime(next(p for p in paths if p.stem == second), ns=(2 * 10**18, 2 * 10**18))
    assert known.latest("acme_msgs/Thing").md5 == second
    assert standard().find("acme_msgs/Thing", first).md5 == first


def test_added_versions_of_shipped_types_do_not_replace_the_current_one(folder):
    md5 = store("float32 data\n", "std_msgs/String")
    assert known.latest("std_msgs/String").md5 == "992ce8a1687cec8c8bd883ec73ca41d1"
    assert standard().find("std_msgs/String", md5).text == "float32 data\n"


def test_a_file_with_another_checksum_than_its_name_is_never_used(folder):
    store("float64 x\n", md5="0123456789abcdef0123456789abcdef")
    assert standard().find("acme_msgs/Thing") is None
    with pytest.raises(DefinitionError, match=r"stored with md5 0123.*, but has"):
        _ = known.latest("acme_msgs/Thing").definition


def test_files_that_cannot_be_used_do_no_harm(folder):
    place = folder / "definitions" / "ros1msg" / "acme_msgs" / "Thing"
    place.mkdir(parents=True)
    (place / f"{'1' * 32}.txt").write_bytes(b"\xff\xfe\x00 this is no definition [[[")
    (place / "other.txt").write_text("float64 x\n")
    (place / f"{'2' * 32}.txt").mkdir()
    md5 = store("float64 x\n")
    assert [d.md5 for d in standard().versions("acme_msgs/Thing")] == [md5]


def test_definitions_that_need_each_other_end(folder):
    for one, other in (("A", "B"), ("B", "A")):
        data_folder.add("ros1msg", f"acme_msgs/{one}", "3" * 32, f"{other} x\n", {})
    assert standard().find("acme_msgs/A") is None


def test_a_file_that_is_too_large_is_not_read(folder, monkeypatch):
    md5 = store("float64 x\n")
    monkeypatch.setattr(data_folder, "MAX_BYTES", 5)
    known._of_file.cache_clear()
    assert known.find("acme_msgs/Thing", md5) == []


@pytest.mark.parametrize("name", ["../x", "a/..", "a//b", "", "a/.b", "a/b\n", "a" * 300])
def test_names_that_are_no_names_of_files_are_refused(folder, name):
    with pytest.raises(LogError, match="cannot be the name of a file"):
        data_folder.add("ros1msg", name, "0" * 32, "", {})
    assert not (folder / "definitions").exists()


def test_nothing_is_stored_if_the_folder_is_off(monkeypatch):
    monkeypatch.setenv("LOGREEL_DATA", "off")
    with pytest.raises(LogError, match="LOGREEL_DATA is off"):
        data_folder.add("ros1msg", "a/B", "0" * 32, "", {})
    assert list(data_folder.files("ros1msg")) == []


def test_the_folder_follows_the_desktop_standard(monkeypatch, tmp_path):
    monkeypatch.delenv("LOGREEL_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder.data_folder() == tmp_path / "logreel"
