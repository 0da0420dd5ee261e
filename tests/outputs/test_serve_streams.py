"""Responses while they are sent: disconnected and slow clients, errors, changed files, and shutdown."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.io import two_pass
from logreel.io.append_file import Appender
from logreel.outputs.http import routes
from logreel.outputs.slice_stream import SliceStream
from support.harness.cli_runner import environment
from support.harness.serving import TOKEN, Client, eventually, received, running, workers
from support.samples.rosbag.builder import drive

#: Larger than what the kernel keeps for a connection on its own.
LARGE = 48 << 20


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Replace all slices by LARGE zero bytes; yield the number of bytes written, in a list."""
    made: list[int] = [0]

    def make(self: SliceStream, out: Appender) -> None:
        for _ in range(LARGE >> 16):
            out.write(bytes(1 << 16))
            made[0] += 1 << 16
        out.finish()

    monkeypatch.setattr(SliceStream, "write", make)
    yield made
    assert eventually(lambda: not workers())


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    (tmp_path / "drive.bag").write_bytes(drive())
    with running(tmp_path) as client:
        yield client


def settled(made: list[int]) -> int:
    """Return the progress when it does not change any more."""
    assert eventually(lambda: made[0] > 4 * two_pass.PIECE)
    before = -1
    while made[0] != before:
        before = made[0]
        time.sleep(0.3)
    return before


@pytest.mark.parametrize("kind", ["mcap", "bag"])
def test_work_stops_when_the_client_disconnects(client: Client, endless: list[int], kind: str) -> None:
    connection = client.raw(client.path("drive.bag", format=kind))
    assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    connection.close()
    assert eventually(lambda: not workers())
    # A format that has to be rehearsed was made once as a whole.
    assert endless[0] < LARGE * (2 if kind == "bag" else 1)


def test_a_dry_run_stops_when_the_client_disconnects(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(self: SliceStream, out: Appender) -> None:
        while True:
            out.write(b"x")
            time.sleep(0.001)

    monkeypatch.setattr(SliceStream, "write", make)
    connection = client.raw(client.path("drive.bag"))
    assert eventually(workers)
    connection.close()
    assert eventually(lambda: not workers())


def test_a_slow_client_gets_the_whole_slice(client: Client, endless: list[int]) -> None:
    connection = client.raw(client.path("drive.bag", format="mcap"), buffer=1 << 16)
    assert settled(endless) < LARGE // 2
    others = client.slice("drive.bag", format="mcap")
    assert len(others.body) == LARGE
    data = received_all(connection)
    assert data.count(0) >= LARGE


def received_all(connection: Any) -> bytes:
    """Return a chunked response up to its last chunk."""
    found = bytearray()
    while not found.endswith(b"\r\n0\r\n\r\n"):
        found += connection.recv(1 << 20)
    connection.close()
    return bytes(found)


def test_a_client_that_reads_nothing_is_disconnected(
    client: Client, endless: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "PATIENCE", 0.2)
    connection = client.raw(client.path("drive.bag", format="mcap"), buffer=1 << 16)
    assert eventually(lambda: client.log_lines)
    assert client.log_lines == ["drive.mcap: broken off: nothing was taken for 0 s"]
    assert eventually(lambda: not workers())
    connection.close()


@pytest.mark.parametrize("kind", ["mcap", "bag"], ids=["in chunks", "of known length"])
def test_an_error_while_sending_breaks_the_connection(
    client: Client, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SliceStream.write

    def make(self: SliceStream, out: Appender) -> None:
        if isinstance(out, two_pass.DryRun):
            real(self, out)
            return
        for _ in range(4):
            out.write(bytes(1 << 16))
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(SliceStream, "write", make)
    monkeypatch.setattr(two_pass, "KEPT", -1)
    with contextlib.closing(client.connect()) as connection:
        connection.request(
            "GET", client.path("drive.bag", format=kind), headers={"Authorization": f"Bearer {TOKEN}"}
        )
        reply = connection.getresponse()
        assert reply.status == 200
        assert (reply.getheader("content-length") is None) == (kind == "mcap")
        with pytest.raises(http.client.IncompleteRead):
            reply.read()
    assert eventually(lambda: client.log_lines)
    assert "broken off" in client.log_lines[0]
    assert "Input/output error" in client.log_lines[0]


def test_an_error_before_the_first_byte_is_an_error_response(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(self: SliceStream, out: Appender) -> None:
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(SliceStream, "write", make)
    reply = client.slice("drive.bag")
    assert reply.status == 500
    assert "mistake" not in reply.error
    assert "a mistake of ours" in client.log_lines[0]


def test_http_1_0_responses_have_a_length(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_pass, "KEPT", -1)
    data = received(client.raw(client.path("drive.bag", format="mcap"), version="1.0"))
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    assert int(length[1]) == len(body)
    assert body == client.slice("drive.bag", format="mcap").body


def test_too_many_slices_at_once_give_503(
    client: Client, endless: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_STREAMS", 2)
    path = client.path("drive.bag", format="mcap")
    connections = [client.raw(path, buffer=1 << 16) for _ in range(2)]
    assert eventually(lambda: len(workers()) == 2)
    reply = client.ask(path)
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    for connection in connections:
        connection.close()
    assert eventually(lambda: not workers())
    assert client.ask(path).status == 200


@pytest.mark.parametrize("change", ["cut", "grow", "touch"])
def test_writing_to_a_file_aborts_its_slices(
    client: Client, endless: list[int], tmp_path: Path, change: str
) -> None:
    connection = client.raw(client.path("drive.bag", format="mcap"), buffer=1 << 16)
    settled(endless)
    path = tmp_path / "drive.bag"
    if change == "touch":
        os.utime(path, ns=(1, 1))
    else:
        os.truncate(path, path.stat().st_size + (-1000 if change == "cut" else 1000))
    data = received(connection)
    assert not data.endswith(b"\r\n0\r\n\r\n")
    assert len(data) < LARGE
    assert client.log_lines == ["drive.mcap: broken off: was changed while it was read: ask again"]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_slices_of_a_removed_file_are_completed(
    client: Client, endless: list[int], tmp_path: Path, how: str
) -> None:
    connection = client.raw(client.path("drive.bag", format="mcap"), buffer=1 << 16)
    settled(endless)
    if how == "removed":
        (tmp_path / "drive.bag").unlink()
    else:
        (tmp_path / "new").write_bytes(b"something else")
        os.replace(tmp_path / "new", tmp_path / "drive.bag")
    assert received_all(connection).count(0) >= LARGE


def test_only_the_last_used_logs_stay_open(tmp_path: Path) -> None:
    from logreel.outputs.serve.catalogue import OPEN, LogCatalogue, OpenLogs
    from support.samples.ulog.builder import tiny

    for n in range(OPEN + 3):
        (tmp_path / f"{n:02}.ulg").write_bytes(tiny())
    logs, entries = OpenLogs(), LogCatalogue([tmp_path]).list()
    first = logs.cached(entries[0])
    for entry in entries:
        assert logs.summary(entry)["channels"]
    assert len(logs._cached) == OPEN
    assert logs.cached(entries[0]) is not first
    assert logs.cached(entries[-1]) is logs.cached(entries[-1])


# ------------------------------------------------------------------------------------------ the command line


def serving(*args: str | Path, token: str | None = None) -> tuple[subprocess.Popen[str], str]:
    """Run the verb in a separate process; return it with the address that it prints."""
    given = {**environment(), **({"LOGREEL_TOKEN": token} if token else {})}
    command = [sys.executable, "-m", "logreel", "serve", *map(str, args)]
    process = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("logreel: serving at http://"), line + process.stderr.read()
    return process, line.split()[-1]


def fetch(address: str, path: str, **headers: str) -> Any:
    from urllib.request import Request, urlopen

    return urlopen(Request(address.rstrip("/") + path, headers=headers), timeout=60)


def ended(process: subprocess.Popen[str], stop: Callable[[], None]) -> tuple[int, str, str]:
    stop()
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_ends_the_verb_while_slices_are_sent(tmp_path: Path) -> None:
    # More than the buffers of both ends of a connection hold.
    with logreel.create(tmp_path / "large.bag") as out:
        channel = out.add_channel("/large", logreel.Schema("my/Bytes", "ros1msg", "uint8[] data\n"))
        for n in range(24):
            out.write(channel, 10**9 + n, {"data": os.urandom(1 << 20)})
    process, address = serving(tmp_path)
    base, _, query = address.partition("?")
    assert len(query) > len("token=") + 30
    with fetch(base, f"/logs?{query}") as reply:
        (log,) = __import__("json").load(reply)["logs"]
    stream = fetch(base, f"/logs/{log['id']}/slice?format=mcap&{query}")
    assert stream.read(1000)
    code, out, err = ended(process, lambda: process.send_signal(signal.SIGINT))
    assert (code, out) == (130, "")
    assert err == "logreel: interrupted\n"
    with contextlib.suppress(ConnectionError), pytest.raises(http.client.IncompleteRead):
        stream.read()


def test_a_chosen_token_is_not_printed(tmp_path: Path) -> None:
    process, address = serving(tmp_path, "--log", token=TOKEN)
    assert "token" not in address
    with fetch(address, "/logs", Authorization=f"Bearer {TOKEN}") as reply:
        assert reply.read() == b'{"logs":[],"next":null}'
    code, out, err = ended(process, lambda: process.send_signal(signal.SIGINT))
    assert (code, out) == (130, "")
    assert "127.0.0.1 GET /logs 200 23 bytes" in err
    assert TOKEN not in err


def test_wrong_usage_of_serve_gives_exit_code_2(tmp_path: Path, run: Any) -> None:
    (tmp_path / "note.txt").write_text("no log")
    assert run("serve").code == 2
    assert run("serve", tmp_path, "--token", "x").code == 2
    assert run("serve", tmp_path, "--port", "70000").code == 2
    assert run("serve", tmp_path / "missing").code == 1
    assert run("serve", tmp_path / "note.txt").code == 5
    done = run("serve", tmp_path, "--host", "no.such.host.invalid")
    assert done.code == 1
    assert "cannot listen at no.such.host.invalid" in done.err
