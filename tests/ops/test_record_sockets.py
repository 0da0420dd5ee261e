"""Frames from UDP, TCP and serial ports: cut as the options say, with every frame written or counted."""

from __future__ import annotations

import os
import pty
import resource
import socket
import struct
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.io.platform import readable
from logreel.ops.record import Feed, Progress, live_source, record
from logreel.ops.record.source import LiveQueue
from logreel.ops.record.sources.streams import LONGEST, FrameSplitter

PATIENCE = 60.0
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="needs /proc and terminals of Linux"
)


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def recording(
    source: str, path: Path, **options: Any
) -> Iterator[Callable[[int], logreel.ops.record.Recorded]]:
    """Record in a thread; yield a function that ends it after so many messages and returns the result."""
    state: list[Progress] = []
    result: list[Any] = []
    over = threading.Event()

    def run() -> None:
        try:
            result.append(record(source, path, stop=over.is_set, progress=state.append, **options))
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def end(messages: int) -> logreel.ops.record.Recorded:
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit and thread.is_alive():
            if state and state[-1].messages >= messages:
                break
            time.sleep(0.01)
        over.set()
        thread.join(PATIENCE)
        if isinstance(result[0], BaseException):
            raise result[0]
        done: logreel.ops.record.Recorded = result[0]
        return done

    try:
        yield end
    finally:
        over.set()
        thread.join(PATIENCE)


def bound(port: int) -> bool:
    """Whether a program receives datagrams at this port; binding it to find out would disturb that program."""
    table = Path("/proc/net/udp").read_text()
    return f":{port:04X} " in table


def wait_until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.01)


def frames_of(path: Path, topic: str) -> list[bytes]:
    return [bytes(m.decode()["data"]) for m in logreel.open(path)[topic]]


def test_each_datagram_is_a_message(tmp_path: Path) -> None:
    port = free_port(socket.SOCK_DGRAM)
    sent = [b"frame %d" % n * (n % 5 + 1) for n in range(300)]
    before = time.time_ns()
    with recording(f"udp://127.0.0.1:{port}?topic=/lidar", tmp_path / "a.mcap") as end:
        wait_until(lambda: bound(port))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for frame in sent:
                sock.sendto(frame, ("127.0.0.1", port))
        done = end(300)
    assert (done.messages, done.lost, done.skipped, done.stopped) == (300, 0, (), True)
    assert frames_of(tmp_path / "a.mcap", "/lidar") == sent
    times = logreel.open(tmp_path / "a.mcap")["/lidar"].times
    assert before <= times[0] <= times[-1] <= time.time_ns()


def test_datagrams_that_the_system_throws_away_are_counted(tmp_path: Path) -> None:
    port = free_port(socket.SOCK_DGRAM)
    source = live_source(f"udp://127.0.0.1:{port}?topic=/a")
    sending, sent = threading.Event(), 12_000

    class Slow(Feed):
        """A feed that takes the first datagram, and no other before all are sent."""

        def put(self, *args: Any, **options: Any) -> bool:
            sending.wait(PATIENCE)
            return Feed.put(self, *args, **options)

    queue = LiveQueue()
    feed = Slow("x", queue)
    thread = threading.Thread(target=source.run, args=(feed,))
    thread.start()
    wait_until(lambda: bound(port))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for n in range(sent):
            sock.sendto(b"%08d" % n * 500, ("127.0.0.1", port))
    sending.set()
    received = 0

    def is_complete() -> bool:
        nonlocal received
        received += sum(isinstance(entry, tuple) for entry in queue.take(0.05))
        return received + feed.channels[0].lost >= sent

    wait_until(is_complete)
    queue.stop()
    thread.join(PATIENCE)
    lost = feed.channels[0].lost
    assert lost > 0
    assert received + lost == sent


def test_frames_get_the_definition_that_the_user_gives(tmp_path: Path) -> None:
    port = free_port(socket.SOCK_DGRAM)
    (tmp_path / "Wind.msg").write_text("uint32 number\nfloat32 speed\n")
    with recording(
        f"udp://127.0.0.1:{port}?topic=/wind", tmp_path / "a.bag", schemas={"/wind": tmp_path / "Wind.msg"}
    ) as end:
        wait_until(lambda: bound(port))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for n in range(20):
                sock.sendto(struct.pack("<If", n, n / 2), ("127.0.0.1", port))
                sock.sendto(b"noise", ("127.0.0.1", port))
        done = end(20)
    wind = logreel.open(tmp_path / "a.bag")["/wind"]
    assert wind["number"].tolist() == list(range(20))
    assert wind["speed"].tolist() == [n / 2 for n in range(20)]
    assert done.broken == 20
    assert "5 bytes instead of 8" in done.skipped[0]


def serve_once(data: bytes, pieces: int) -> int:
    """Serve *data* to the first client in pieces of this size, then close; return the port."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as connection:
            for at in range(0, len(data), pieces):
                connection.sendall(data[at : at + pieces])

    threading.Thread(target=serve).start()
    port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("pieces", [1, 7, 100_000])
@pytest.mark.parametrize("how", ["size=8", "prefix=u16", "prefix=u32be", "frame=lines"])
def test_frames_are_cut_from_a_stream(how: str, pieces: int, tmp_path: Path) -> None:
    frames = [b"%08d" % n for n in range(150)] if how == "size=8" else [b"x" * (n % 9) for n in range(150)]
    pack: dict[str, Callable[[bytes], bytes]] = {
        "size=8": lambda frame: frame,
        "prefix=u16": lambda frame: struct.pack("<H", len(frame)) + frame,
        "prefix=u32be": lambda frame: struct.pack(">I", len(frame)) + frame,
        "frame=lines": lambda frame: frame + b"\r\n",
    }
    port = serve_once(b"".join(map(pack[how], frames)), pieces)
    done = record(f"tcp://127.0.0.1:{port}?topic=/a&{how}", tmp_path / "a.mcap")
    assert (done.messages, done.skipped, done.stopped) == (150, (), False)
    found = [m.decode()["data"] for m in logreel.open(tmp_path / "a.mcap")["/a"]]
    assert [one.encode() if isinstance(one, str) else bytes(one) for one in found] == frames


def test_a_cut_frame_is_reported(tmp_path: Path) -> None:
    port = serve_once(b"12345678" * 3 + b"123", 8)
    done = record(f"tcp://127.0.0.1:{port}?topic=/a&size=8", tmp_path / "a.mcap")
    assert done.messages == 3
    assert done.skipped == (f"tcp://127.0.0.1:{port}?topic=/a&size=8: the last 3 bytes are no whole frame",)


def test_lengths_that_cannot_be_end_the_source(tmp_path: Path) -> None:
    port = serve_once(struct.pack("<I", 3) + b"abc" + b"\xff" * 100, 1000)
    done = record(f"tcp://127.0.0.1:{port}?prefix=u32", tmp_path / "a.mcap")
    assert done.messages == 1
    assert "a frame of 4294967295 bytes" in done.skipped[0]


def test_lines_of_json_come_over_tcp(tmp_path: Path) -> None:
    text = b"".join(b'{"topic": "/a", "time_ns": %d, "data": {"x": %d}}\n' % (n, n) for n in range(1, 50))
    port = serve_once(text + b"oops\n", 1000)
    done = record(f"tcp://127.0.0.1:{port}?frame=json", tmp_path / "a.bag")
    assert (done.messages, done.lines, done.broken) == (49, 50, 1)
    assert "line 50: this is no JSON" in done.skipped[0]
    assert logreel.open(tmp_path / "a.bag")["/a"]["x"].tolist() == list(range(1, 50))


def test_clients_are_served_one_after_the_other(tmp_path: Path) -> None:
    port = free_port(socket.SOCK_STREAM)
    with recording(f"tcp://127.0.0.1:{port}?size=4&listen=yes&topic=/a", tmp_path / "a.mcap") as end:
        for n in range(3):
            limit = time.monotonic() + PATIENCE
            while True:
                try:
                    connection = socket.create_connection(("127.0.0.1", port), 5)
                    break
                except OSError:
                    assert time.monotonic() < limit
                    time.sleep(0.01)
            with connection:
                connection.sendall(b"%04d" % n * 10)
        done = end(30)
    assert done.messages == 30
    assert frames_of(tmp_path / "a.mcap", "/a") == [b"%04d" % (n // 10) for n in range(30)]


def test_a_refused_connection_is_an_error(tmp_path: Path) -> None:
    port = free_port(socket.SOCK_STREAM)
    with pytest.raises(logreel.LogError, match="Connection refused"):
        record(f"tcp://127.0.0.1:{port}?size=4", tmp_path / "a.bag")
    assert os.listdir(tmp_path) == []


def test_a_serial_port_is_recorded(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    tty.setraw(master)
    name = os.ttyname(slave)
    with recording(f"serial:{name}?baud=57600&frame=lines&topic=/gps", tmp_path / "a.bag") as end:
        # What comes before the port is set up is thrown away.
        wait_until(lambda: termios.tcgetattr(slave)[4] == termios.B57600 and termios.tcgetattr(slave)[3] == 0)
        for n in range(100):
            os.write(master, b"$GPGGA,%d\r\n" % n)
        done = end(100)
    os.close(slave)
    os.close(master)
    assert done.messages == 100
    found = [m.decode()["data"] for m in logreel.open(tmp_path / "a.bag")["/gps"]]
    assert found == [f"$GPGGA,{n}" for n in range(100)]


def test_a_device_that_disappears_ends_the_source(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    with recording(f"serial:{name}?size=4&topic=/a", tmp_path / "a.bag", flush_every=0.05) as end:
        wait_until(lambda: termios.tcgetattr(slave)[3] == 0)
        os.write(master, b"12345678")
        os.close(slave)
        wait_until(lambda: (tmp_path / "a.bag.active").stat().st_size > 4200)
        os.close(master)
        done = end(1 << 30)
    assert done.messages == 2
    assert not done.stopped


@pytest.mark.parametrize(
    ("spelling", "why"),
    [
        ("udp:127.0.0.1:9000", "write udp://HOST:PORT"),
        ("udp://127.0.0.1", "write udp://HOST:PORT"),
        ("udp://127.0.0.1:99999", "write udp://HOST:PORT"),
        ("udp://127.0.0.1:9000?color=red", "no option 'color'"),
        ("udp://127.0.0.1:9000?topic", "as .NAME=VALUE"),
        ("udp://127.0.0.1:9000?size=8&frame=lines", "frames are found in one way"),
        ("tcp://127.0.0.1:9000", "say how to find frames"),
        ("tcp://127.0.0.1:9000?frame=datagram", "'datagram' is unknown"),
        ("tcp://127.0.0.1:9000?prefix=u64", "'u64' is unknown"),
        ("tcp://127.0.0.1:9000?size=0", "a whole number from 1"),
        ("tcp://127.0.0.1:9000?size=4&listen=maybe", "listen is yes or no"),
        ("serial:", "write serial:DEVICE"),
        ("serial:/dev/x?baud=fast&size=4", "a whole number"),
        ("serial:/dev/x?parity=mark&size=4", "parity is none, even, odd"),
        ("lines:", "write lines:FILE"),
        ("pigeon:home", "names no source; sources begin with lines:, udp:"),
    ],
)
def test_wrong_spellings_are_refused(spelling: str, why: str) -> None:
    with pytest.raises(logreel.UsageError, match=why):
        live_source(spelling)


def test_endless_lines_need_bounded_memory() -> None:
    queue = LiveQueue()
    feed = Feed("x", queue)
    frames = FrameSplitter("x", "/a", "lines", "", "", packets=False)
    channel = frames.declare(feed)
    piece = b"y" * (LONGEST // 4)
    for _ in range(9):
        frames.pass_on(feed, channel, piece, 0, wait=False)
        assert len(frames._begun) <= LONGEST
    frames.pass_on(feed, channel, b"\nfine\n", 0, wait=False)
    found = [entry[2] for entry in queue.take(0) if isinstance(entry, tuple)]
    assert found == [b"fine"]
    assert feed.broken == 1


def test_sources_work_with_many_open_files(tmp_path: Path) -> None:
    """``select.select`` refuses file descriptors above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("no more than 2048 files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    kept: list[int] = []
    try:
        while not kept or kept[-1] < 1100:
            kept.append(os.open(os.devnull, os.O_RDONLY))
        end, begin = os.pipe()
        assert end > 1023
        assert not readable(end, 0)
        os.write(begin, b"x")
        assert readable(end, 10)
        os.read(end, 1)
        os.close(begin)
        assert readable(end, 10)
        os.close(end)
    finally:
        for number in kept:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("frame", ["lines", "json"])
def test_a_line_without_end_on_a_socket_is_a_loss_and_no_message(tmp_path: Path, frame: str) -> None:
    """Its rest is no message either, also not of the next client, and cutting it takes linear time."""
    port = free_port(socket.SOCK_STREAM)
    with recording(f"tcp://127.0.0.1:{port}?frame={frame}&listen=yes", tmp_path / "a.mcap") as end:
        for n in range(2):
            limit = time.monotonic() + PATIENCE
            while True:
                try:
                    client = socket.create_connection(("127.0.0.1", port))
                    break
                except ConnectionRefusedError:
                    assert time.monotonic() < limit
                    time.sleep(0.01)
            with client:
                if n == 0:
                    client.sendall(bytes(b"x" * (LONGEST + (3 << 20))))
                else:
                    client.sendall(b'{"topic": "/a", "time_ns": 1, "data": {"n": 1}}\n')
        done = end(1)
    assert done.broken == 1
    assert "a line of more than" in done.skipped[0]
    assert sum(ch.messages for ch in done.channels) == 1


def test_a_pipe_with_a_line_without_end_lets_the_recording_stop(tmp_path: Path) -> None:
    with open("/dev/zero", "rb") as endless:
        begun = time.monotonic()
        done = record(endless, tmp_path / "a.mcap", stop=lambda: time.monotonic() > begun + 0.5)
    assert done.stopped
    assert time.monotonic() < begun + PATIENCE
