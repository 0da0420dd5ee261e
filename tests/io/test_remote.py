"""Logs on web servers: equal to local ones, changes and faults of servers are clear errors, and no secret is shown."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import pyarrow as pa
import pytest

import logreel
from logreel import errors as notices
from logreel.errors import (
    FileChangedError,
    LogError,
    MissingDependencyError,
    UnknownFormatError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)
from logreel.formats.mcap import index_builder, reader
from logreel.io.remote import object_store, remote_source
from logreel.io.remote import remote_source as sparse_copy
from logreel.io.remote.address import parse
from support.builders.fleets import fleet_log
from support.builders.many_chunks import many_chunks_mcap
from support.harness.cli_runner import Run
from support.harness.range_server import Served, serving_ranges

pytest.importorskip("obstore", reason="needs obstore: pip install 'logreel[remote]'")

SECRET = "X-Amz-Signature=s3cr3t%2Fsigned"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Return a server on loopback; requests that fail are repeated at once."""
    monkeypatch.setattr(object_store, "RETRIES", 1)
    with serving_ranges() as served:
        yield served


@pytest.fixture
def told() -> Iterator[list[str]]:
    """Return the notices of the library."""
    found: list[str] = []
    notices.listeners.append(found.append)
    yield found
    notices.listeners.remove(found.append)


def read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read small logs as if they were large: in ranges, by small requests."""
    monkeypatch.setattr(remote_source, "SMALL_BYTES", 0)
    monkeypatch.setattr(object_store, "HEAD_BYTES", 4096)
    monkeypatch.setattr(sparse_copy, "PAGE", 512)
    monkeypatch.setattr(sparse_copy, "GAP", 0)
    monkeypatch.setattr(index_builder, "SMALL", 0)
    monkeypatch.setattr(reader, "TAIL_BYTES", 512)


def as_bytes(table: pa.Table) -> bytes:
    """Return a table in Arrow's stream format, without metadata, which name the log; NaN equals NaN."""
    table, out = table.replace_schema_metadata().combine_chunks(), pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue().to_pybytes()


def columns(log: logreel.Log) -> dict[str, bytes]:
    """Return all channels as bytes."""
    return {topic: as_bytes(ch.to_arrow(explode=False)) for topic, ch in log.items()}


def local_or_same_error(content: bytes, url: str) -> logreel.Log | None:
    """Return the local log; None if it cannot be opened, for the same reason as the remote one."""
    try:
        return logreel.open(content)
    except LogError as error:
        with pytest.raises(type(error)):
            logreel.open(url)
        return None


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "whole"])
def test_columns_of_every_format_equal_those_of_the_local_file(
    server: Served, number: int, ranges: bool
) -> None:
    suffix, content = fleet_log(number)
    server.ranges = ranges
    url = server.put(f"log{suffix}", content)
    if (local := local_or_same_error(content, url)) is None:
        return
    remote = logreel.open(url)
    assert list(remote) == list(local)
    assert columns(remote) == columns(local)
    assert (remote.start, remote.end, remote.size, remote.format) == (
        local.start,
        local.end,
        local.size,
        local.format,
    )
    assert [p.code for p in remote.problems] == [p.code for p in local.problems]
    assert [m.data.tobytes() for m in remote.messages()] == [m.data.tobytes() for m in local.messages()]
    assert remote.metadata == local.metadata


@pytest.mark.parametrize("number", range(12))
def test_ranges_of_every_format_equal_the_local_file(
    server: Served, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_pages(monkeypatch)
    suffix, content = fleet_log(number)
    url = server.put(f"log{suffix}", content)
    if (local := local_or_same_error(content, url)) is None:
        return
    for topic in local:
        channel = logreel.open(url)[topic]
        assert as_bytes(channel.to_arrow()) == as_bytes(local[topic].to_arrow()), topic
    remote = logreel.open(url)
    assert [c.start for c in remote.values()] == [c.start for c in local.values()]
    if local.start is not None and local.end is not None:
        middle, end = (local.start + local.end) // 2, local.end - (local.end - local.start) // 4
        for topic in local:
            found, due = (
                as_bytes(log[topic].to_arrow(start=middle, end=end)) for log in (logreel.open(url), local)
            )
            assert found == due, topic
        read, whole = (
            [(m.time, m.data.tobytes()) for m in log.messages(start=middle, end=end, reverse=True)]
            for log in (logreel.open(url), local)
        )
        assert read == whole
    assert columns(remote) == columns(local)


def test_a_log_that_is_read_as_a_whole_is_announced(
    server: Served, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_pages(monkeypatch)
    content = fleet_log(0)[1]
    url = server.put("a.ulg", content)
    logreel.open(f"{url}?{SECRET}")
    assert told == [
        f"{url}: it has to be read as a whole, so {len(content) - 4096} more bytes are downloaded"
    ]
    server.ranges = False
    logreel.open(f"{url}?{SECRET}")
    assert told[1:] == [f"{url}: the server sends no ranges, so all {len(content)} bytes are downloaded"]


def test_the_command_line_shows_the_download_on_stderr(server: Served, run: Run) -> None:
    server.ranges = False
    url = server.put("a.mcap", fleet_log(2)[1])
    done = run("info", "--json", f"{url}?{SECRET}")
    assert done.code == 0
    assert done.json["path"] == url
    assert done.err.startswith(f"logreel: {url}: the server sends no ranges")
    assert notices.listeners == []


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "no such object"),
        (401, "refuses access (401 Unauthorized)"),
        (403, "refuses access (403 Forbidden)"),
        (418, "answers 418"),
        (503, "answers 503 Service Unavailable"),
    ],
)
def test_an_error_of_the_server_is_one_sentence_without_secrets(
    server: Served, run: Run, status: int, text: str
) -> None:
    server.statuses, server.forever = [status], True
    url = f"{server.url.replace('//', '//me:passw0rd@')}/a.bag?{SECRET}"
    with pytest.raises(LogError) as caught:
        logreel.open(url)
    shown = "".join(traceback.format_exception(caught.value))
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"{server.url}/a.bag: ")
    done = run("info", url)
    assert done.code == 1
    assert text in done.err
    for one in (shown, done.out, done.err, repr(caught.value)):
        assert "s3cr3t" not in one.replace(f'"{url}"', "")
        assert "passw0rd" not in one.replace(f'"{url}"', "")
    assert isinstance(caught.value, OSError) == (status >= 500)
    # Faults of the server are repeated, others are not.
    assert len(server.asked) == (4 if status >= 500 else 2)


def test_faults_that_pass_are_repeated(server: Served) -> None:
    url = server.put("a.mcap", fleet_log(2)[1])
    server.statuses = [503]
    assert len(logreel.open(url).channels)
    server.breaks = 1
    assert len(logreel.open(url).channels)


def test_a_server_that_breaks_off_each_time_is_an_error(server: Served) -> None:
    url = server.put("a.mcap", fleet_log(2)[1])
    server.breaks = 100
    with pytest.raises(UnreachableError, match="the transfer broke off"):
        logreel.open(url)
    assert len(server.asked) < 30
    server.breaks, server.ranges = 100, False
    with pytest.raises(UnreachableError, match="the transfer broke off"):
        logreel.open(url)


def test_a_server_that_does_not_answer_is_an_error(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "REQUEST_TIME", timedelta(milliseconds=200))
    monkeypatch.setattr(object_store, "RETRIES", 0)
    server.stalls = Event()
    with pytest.raises(UnreachableError, match="does not answer in time"):
        logreel.open(f"{server.url}/a.bag")


def test_no_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "RETRIES", 0)
    with serving_ranges() as served:
        url = served.put("a.bag", b"")
    with pytest.raises(UnreachableError, match="cannot be reached"):
        logreel.open(url)


@pytest.mark.parametrize("tag", ['"2"', 'W/"2"', None], ids=["tag", "weak", "size"])
def test_an_object_that_is_replaced_while_it_is_read_is_an_error(
    server: Served, monkeypatch: pytest.MonkeyPatch, tag: str | None
) -> None:
    read_in_pages(monkeypatch)
    server.tag = tag and tag.replace("2", "1")
    content = many_chunks_mcap()
    url = server.put("a.mcap", content)
    log = logreel.open(url)
    server.tag = tag
    server.put("a.mcap", content if tag else content + b"\0")
    with pytest.raises(FileChangedError, match="was replaced while it was open"):
        log["/often"].to_arrow()
    with pytest.raises(FileChangedError):
        log.check_unchanged()
    del server.objects["/a.mcap"]
    with pytest.raises(FileChangedError):
        list(log.messages())


def test_an_empty_object_is_an_empty_file(server: Served) -> None:
    with pytest.raises(UnknownFormatError, match="the file is empty"):
        logreel.open(server.put("a.bag", b""))


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("ftp://host/a.bag", UnsupportedError),
        ("http:///a.bag", UsageError),
        ("http://[::1/a.bag", UsageError),
        ("s3:///key", UsageError),
        ("s3://id:passw0rd@bucket/key", UsageError),
        ("s3://bucket//a//b", LogError),
    ],
)
def test_a_wrong_address_is_an_error_without_secrets(url: str, kind: type[LogError]) -> None:
    with pytest.raises(kind) as caught:
        logreel.open(url)
    assert "passw0rd" not in str(caught.value)


def test_a_redirect_to_another_host_is_followed_without_its_credentials(server: Served) -> None:
    content = fleet_log(2)[1]
    with serving_ranges() as other:
        server.location = other.put("there.mcap", content).replace("127.0.0.1", "localhost")
        url = f"{server.url.replace('//', '//me:passw0rd@')}/here.mcap"
        assert columns(logreel.open(url)) == columns(logreel.open(content))
        assert any("Authorization" in one or "authorization" in one for one in server.headers)
        assert not any("Authorization" in one or "authorization" in one for one in other.headers)


def test_more_than_the_limit_is_not_downloaded(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_pages(monkeypatch)
    monkeypatch.setenv("LOGREEL_LIMITS", "remote_bytes=9000")
    url = server.put("a.ulg", fleet_log(0)[1])
    for ranges in (True, False):
        server.ranges = ranges
        with pytest.raises(
            LogError, match="bytes of it would be downloaded, more than the limit remote_bytes"
        ):
            logreel.open(url)
    assert len(logreel.open(url, limits=logreel.Limits()).channels)


def test_a_remote_log_is_handed_to_another_process_by_its_address(server: Served) -> None:
    url = server.put("a.mcap", fleet_log(2)[1])
    log = logreel.open(f"{url}?{SECRET}")
    back = pickle.loads(pickle.dumps(log))  # noqa: S301 - our own bytes
    assert (back.name, columns(back)) == (url, columns(log))


def test_several_remote_logs_are_one_log(server: Served) -> None:
    content = fleet_log(2)[1], many_chunks_mcap()
    urls = [server.put(f"{n}.mcap", one) for n, one in enumerate(content)]
    assert columns(logreel.open(urls)) == columns(logreel.open(list(content)))


def test_many_threads_read_one_remote_log(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_pages(monkeypatch)
    content = many_chunks_mcap()
    log, due = logreel.open(server.put("a.mcap", content)), logreel.open(content)
    with ThreadPoolExecutor(8) as pool:
        topics = [*due] * 4
        found = list(pool.map(lambda topic: log[topic].to_arrow(), topics))
    assert all(table.equals(due[topic].to_arrow()) for table, topic in zip(found, topics, strict=True))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingDependencyError, match=r"logreel\[remote\]"):
        logreel.open("https://example.com/a.bag")


def test_an_object_of_a_web_server_is_connected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def store(url: str) -> object:
        return object_store.store_of(parse(url))

    url = "http://127.0.0.1:9/x.ulg"
    first = store(url)
    assert store(url) is first
    assert store("http://127.0.0.1:9/y.ulg") is not first
    # No secret is kept after its last use.
    for secret in ("http://user:word@127.0.0.1:9/x.ulg", f"{url}?signature=1"):
        assert store(secret) is not store(secret)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:7")
    assert store(url) is not first
