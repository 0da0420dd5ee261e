"""Logs that are recorded from a genuine Foxglove server, read by other libraries."""

from __future__ import annotations

import datetime
import ipaddress
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.ops.record import Recorded
from support.harness.cli_runner import environment
from support.harness.foxglove_server import Server, foxglove, subscribed
from support.harness.live_sources import PATIENCE, wait_for

reader = pytest.importorskip("mcap.reader")

T0 = 1_700_000_000 * 10**9
VECTOR = b"float64 x\nfloat64 y\nfloat64 z\n"
#: Topic, encoding of messages, schema, payload of a number.
CHANNELS: list[tuple[str, str, tuple[str, str, bytes]]] = [
    ("/ros1", "ros1", ("geometry_msgs/Vector3", "ros1msg", VECTOR)),
    ("/cdr", "cdr", ("geometry_msgs/msg/Vector3", "ros2msg", VECTOR)),
    ("/pb", "protobuf", ("a.B", "protobuf", b"\x0a\x07\x0a\x01b\x22\x02\x0a\x00")),
    ("/json", "json", ("J", "jsonschema", b'{"type": "object"}')),
    ("/own", "own", ("O", "own", b"what it is")),
]


def payload(encoding: str, n: int) -> bytes:
    values = struct.pack("<3d", n, n / 2, -n)
    return {
        "ros1": values,
        "cdr": b"\x00\x01\x00\x00" + values,
        "protobuf": bytes([8, n % 128]),
        "json": json.dumps({"n": n}).encode(),
    }.get(encoding, bytes([n % 256]))


class Recording:
    """A recording in a thread; *done*: its result."""

    def __init__(self, source: str, path: Path, **options: Any) -> None:
        self.done: Recorded | None = None
        self._stopping = threading.Event()

        def run() -> None:
            self.done = logreel.record(source, path, stop=self._stopping.is_set, **options)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def stop(self) -> Recorded:
        self._stopping.set()
        self._thread.join(PATIENCE)
        assert self.done is not None
        return self.done


@contextmanager
def recording(source: str, path: Path, **options: Any) -> Iterator[Recording]:
    running = Recording(source, path, **options)
    try:
        yield running
    finally:
        running.stop()


def count(path: Path) -> int:
    """Return the number of messages in a log that is being written."""
    try:
        with logreel.open(f"{path}.active") as log:
            return sum(map(len, log.channels.values()))
    except (logreel.LogError, OSError):
        return 0


def publish(server: Server, messages: int) -> None:
    """Send messages of all encodings."""
    channels = {
        topic: server.channel(topic, encoding, foxglove.Schema(name=name, encoding=language, data=data))
        for topic, encoding, (name, language, data) in CHANNELS
    }
    subscribed(*channels.values())
    for n in range(messages):
        for topic, encoding, _ in CHANNELS:
            channels[topic].log(payload(encoding, n), log_time=T0 + n)


def test_an_mcap_has_all_messages_as_they_came(tmp_path: Path) -> None:
    path, messages = tmp_path / "out.mcap", 500
    with Server() as server, recording(server.url, path, flush_every=0.1) as running:
        publish(server, messages)
        wait_for(lambda: count(path) == messages * len(CHANNELS))
        done = running.stop()
    assert (done.skipped, done.lost) == ((), 0)
    found: dict[str, list[tuple[int, bytes]]] = {}
    with path.open("rb") as file:
        for schema, channel, message in reader.make_reader(file, validate_crcs=True).iter_messages():
            (given,) = (one for one in CHANNELS if one[0] == channel.topic)
            assert (channel.message_encoding, (schema.name, schema.encoding, schema.data)) == given[1:]
            found.setdefault(channel.topic, []).append((message.log_time, message.data))
    for topic, encoding, _ in CHANNELS:
        assert found[topic] == [(T0 + n, payload(encoding, n)) for n in range(messages)]


def test_a_bag_has_ros_messages_and_names_what_it_cannot_hold(tmp_path: Path) -> None:
    path, messages = tmp_path / "out.bag", 50
    with Server() as server, recording(server.url, path, flush_every=0.1) as running:
        publish(server, messages)
        wait_for(lambda: count(path) == messages * 2)
        done = running.stop()
    with logreel.open(path) as log:
        assert not log.problems
        assert log["/ros1"].schema.name == "geometry_msgs/Vector3"
        # Messages of ROS 2 are written as those of ROS 1.
        for topic in ("/ros1", "/cdr"):
            assert [bytes(one.data) for one in log[topic]] == [payload("ros1", n) for n in range(messages)]
            assert log[topic].times.tolist() == list(range(T0, T0 + messages))
        assert set(log.channels) == {"/ros1", "/cdr"}
    for topic in ("/pb", "/json", "/own"):
        (sentence,) = (one for one in done.skipped if repr(topic) in one)
        assert sentence.startswith(f"{messages} messages of '{topic}' were left out")
        assert "MCAP" in sentence


def test_the_command_records_selected_topics_until_it_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "out.mcap"
    with Server() as server:
        command = [sys.executable, "-m", "logreel", "record", str(path), "--from", server.url, "-t", "/[jo]*"]
        with subprocess.Popen(
            [*command, "-x", "/own", "--json"], env=environment(), stdout=subprocess.PIPE
        ) as recorder:
            try:
                channels = {topic: server.channel(topic) for topic in ("/json", "/own", "/a")}
                subscribed(channels["/json"])
                for channel in channels.values():
                    channel.log(b"{}", log_time=T0)
                wait_for(lambda: count(path) == 1)
                recorder.send_signal(signal.SIGINT)
                out, _ = recorder.communicate(timeout=PATIENCE)
            finally:
                recorder.kill()
    assert recorder.returncode == 0
    done = json.loads(out)
    assert (done["messages"], done["lost"], done["source"]) == (1, 0, server.url)
    with logreel.open(path) as log:
        assert [message.decode() for message in log.messages()] == [{}]
        assert list(log.channels) == ["/json"]


def certificate() -> tuple[bytes, bytes]:
    """Return a certificate for 127.0.0.1 that signs itself, and its key, as PEM."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "logreel test")])
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), begin, begin + datetime.timedelta(days=30)
    )
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), private


def test_certificates_of_servers_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate()
    (tmp_path / "cert.pem").write_bytes(cert)
    path = tmp_path / "out.mcap"
    with Server(tls_cert=cert, tls_key=key) as server:
        url = server.url.replace("ws:", "wss:")
        with pytest.raises(logreel.LogError, match="certificate verify failed"):
            logreel.record(url, path)
        # Certificates that the user trusts.
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        with recording(url, path, flush_every=0.1):
            channel = server.channel("/json")
            subscribed(channel)
            for n in range(100):
                channel.log(payload("json", n), log_time=T0 + n)
            wait_for(lambda: count(path) == 100)


def test_a_missing_server_leaves_no_file(tmp_path: Path) -> None:
    # Nobody listens at this port, and nobody else gets it.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(logreel.LogError, match="no server answers"):
            logreel.record(f"ws://127.0.0.1:{bound.getsockname()[1]}", tmp_path / "out.mcap")
    assert not list(tmp_path.iterdir())
