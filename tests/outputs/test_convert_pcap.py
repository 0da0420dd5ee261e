"""Velodyne packets as capture files, read back by a naive reader, and by tcpdump where it is installed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.koblenz.builder import Builder
from support.samples.koblenz.scene import Scene, hdl32e


class Seen(NamedTuple):
    """One captured packet: time in ns, and the payload."""

    time: int
    data: bytes


def captured(path: Path) -> list[Seen]:
    """A naive reader of capture files with Ethernet, IPv4 and UDP, which checks every length and checksum."""
    content = path.read_bytes()
    magic, major, minor, zone, accuracy, longest, link = struct.unpack_from("<IHHiIII", content)
    assert (magic, major, minor, zone, accuracy, link) == (0xA1B23C4D, 2, 4, 0, 0, 1)
    at, found = 24, []
    while at < len(content):
        second, rest, size, original = struct.unpack_from("<IIII", content, at)
        frame = content[at + 16 : at + 16 + size]
        at += 16 + size
        assert len(frame) == size == original <= longest
        assert rest < 10**9
        assert frame[12:14] == b"\x08\x00"
        words = struct.unpack(">10H", frame[14:34])
        assert sum(words) % 0xFFFF == 0
        assert (frame[14], frame[23], words[1]) == (0x45, 17, size - 14)
        source, target, length, _ = struct.unpack(">HHHH", frame[34:42])
        assert (source, target, length) == (443, 2368, size - 34)
        found.append(Seen(second * 10**9 + rest, frame[42:]))
    return found


@pytest.fixture
def packets() -> list[bytes]:
    return hdl32e(Scene(), 0, 60)


@pytest.fixture
def koblenz(tmp_path: Path, packets: list[bytes]) -> Path:
    out = Builder()
    for n in range(0, 60, 20):
        out.velodyne(10.0 * n, packets[n : n + 20])
    (tmp_path / "a.log").write_bytes(out.bytes())
    return tmp_path / "a.log"


def scans(path: Path, packets: list[bytes], *topics: str) -> logreel.Log:
    """A bag with ten packets per message, each with a stamp of its own."""
    with logreel.create(path) as w:
        for topic in topics:
            ch = w.add_channel(topic, logreel.Schema("velodyne_msgs/VelodyneScan", "ros1msg"))
            for n in range(0, len(packets), 10):
                time = 1_700_000_000 * 10**9 + n * 10**6
                items = [
                    {"stamp": time + k * 100_000, "data": list(one)}
                    for k, one in enumerate(packets[n : n + 10])
                ]
                header = {"seq": n, "stamp": time, "frame_id": "velodyne"}
                w.write(ch, time, {"header": header, "packets": items})
    return logreel.open(path)


def test_packets_of_koblenz_logs_are_captured_unchanged(
    koblenz: Path, packets: list[bytes], tmp_path: Path
) -> None:
    done = logreel.convert(koblenz, tmp_path / "a.pcap")
    found = captured(tmp_path / "a.pcap")
    assert [one.data for one in found] == packets
    assert [one.time for one in found] == sorted(one.time for one in found)
    assert done.rows == 60
    assert any("does not say how its clock relates to UTC" in note for note in done.notes)


def test_packets_of_bags_have_their_stamps(packets: list[bytes], tmp_path: Path) -> None:
    log = scans(tmp_path / "a.bag", packets, "/velodyne_packets")
    logreel.convert(log, tmp_path / "a.pcap")
    start = 1_700_000_000 * 10**9
    expected = [Seen(start + n // 10 * 10**7 + n % 10 * 100_000, one) for n, one in enumerate(packets)]
    assert captured(tmp_path / "a.pcap") == expected
    logreel.convert(log, tmp_path / "b.pcap", start="+15ms", end="+35ms")
    assert captured(tmp_path / "b.pcap") == expected[20:40]


def test_several_scanners_need_a_folder(packets: list[bytes], tmp_path: Path, run: Run) -> None:
    scans(tmp_path / "a.bag", packets[:20], "/left", "/right")
    assert run("convert", tmp_path / "a.bag", tmp_path / "a.pcap").code == 2
    assert run("convert", tmp_path / "a.bag", f"{tmp_path / 'a.pcap'}/").code == 0
    names = sorted(p.name for p in (tmp_path / "a.pcap").glob("*.pcap"))
    assert names == ["left.pcap", "right.pcap"]
    for name in names:
        assert [one.data for one in captured(tmp_path / "a.pcap" / name)] == packets[:20]


def test_logs_without_packets_are_refused(run: Run, logs: Path, tmp_path: Path) -> None:
    done = run("convert", logs / "flight.ulg", tmp_path / "a.pcap")
    assert done.code in (1, 2)
    assert "packets of a Velodyne scanner" in done.err


def test_tcpdump_reads_the_file(koblenz: Path, tmp_path: Path) -> None:
    if not (tcpdump := shutil.which("tcpdump")):
        pytest.skip("no tcpdump here")
    logreel.convert(koblenz, tmp_path / "a.pcap")
    done = subprocess.run(
        [tcpdump, "-n", "-r", tmp_path / "a.pcap"], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("192.168.1.201.443 > 255.255.255.255.2368: UDP, length 1206") == 60
