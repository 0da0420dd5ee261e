"""Slices over HTTP have the bytes of ``logreel slice`` and ``logreel convert``, for every format."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import logreel
from logreel.errors import LogError
from logreel.formats.bddf import writer as index_writer
from logreel.io import two_pass
from logreel.outputs.slice_stream import kinds
from logreel.registry.format import Format
from support.formats import small_log, written_formats
from support.harness.serving import Client, running

SAMPLES = {name: f"{name}{fmt.suffixes[0]}" for name, fmt in written_formats().items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    for name, file in SAMPLES.items():
        (folder / file).write_bytes(small_log(name))
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with running(folder) as client:
        yield client


def wishes(log: logreel.Log) -> list[dict[str, Any]]:
    """Parts of a log: all, the second half, and two channels up to the middle but the first one."""
    assert log.start is not None
    assert log.end is not None
    middle = (log.start + log.end) // 2
    names = [ch.topic for ch in log.channels.values() if len(ch)][:3]
    return [{}, {"start": f"{middle}ns"}, {"end": f"{middle}ns", "topics": names, "exclude": names[:1]}]


def written(log: logreel.Log, path: Path, wish: dict[str, Any], convert: bool = False) -> bytes | str:
    """Return the bytes that the verb writes, or its error."""
    try:
        if convert:
            # The verb cannot leave out channels: those to be left out are not named.
            left = [topic for topic in wish.get("topics", ()) if topic not in wish["exclude"]] or None
            span = {"start": wish.get("start"), "end": wish.get("end")}
            logreel.convert(log, path, topics=left, raw=path.suffix == ".mcap", force=True, **span)
        else:
            logreel.slice(log, path, force=True, **wish)
    except LogError as error:
        return error.text
    return path.read_bytes()


def asked(client: Client, name: str, wish: dict[str, Any], **more: str) -> bytes | str:
    given = {{"topics": "topic"}.get(key, key): value for key, value in wish.items()}
    reply = client.slice(name, **given, **more)
    assert reply.status in (200, 400, 422), reply
    return reply.body if reply.status == 200 else reply.error


@pytest.mark.parametrize("large", [False, True], ids=["kept", "streamed"])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_slice_has_the_bytes_of_the_verb(
    name: str, large: bool, client: Client, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        # Changes that come later fall into pieces that were sent, and across their edges.
        monkeypatch.setattr(two_pass, "KEPT", -1)
        monkeypatch.setattr(two_pass, "PIECE", 1000)
        monkeypatch.setattr(index_writer, "KEPT", 2000)
    with logreel.open(folder / SAMPLES[name]) as log:
        for wish in wishes(log):
            due = written(log, tmp_path / SAMPLES[name], wish)
            assert asked(client, SAMPLES[name], wish) == due
            assert asked(client, SAMPLES[name], wish, format=name) == due


@pytest.mark.parametrize("kind", ["mcap", "bag", "ulg", "ndjson", "csv", "arrow", "geojson"])
@pytest.mark.parametrize("name", ["bddf", "rosbag", "mcap"])
def test_a_slice_of_another_format_has_the_bytes_of_convert(
    name: str, kind: str, client: Client, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tables tell the path of their source; the service knows logs by their names below the folder.
    monkeypatch.chdir(folder)
    with logreel.open(SAMPLES[name]) as log:
        one = {"topics": [next(iter(log))], "exclude": [], "start": "+1s"}
        for wish in (one, wishes(log)[2]) if kind not in ("csv", "arrow") else (one,):
            due = written(log, tmp_path / f"a.{kind}", wish, convert=True)
            assert asked(client, SAMPLES[name], wish, format=kind) == due


def test_a_format_of_another_package_needs_no_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.index.block_table import Blocks
    from logreel.index.message_index import MessageIndex
    from logreel.io.source import Chunks, Source
    from logreel.log.scan import Saved, Scan
    from logreel.registry import registry
    from logreel.write.format_writer import FormatWriter
    from logreel.write.log_copier import Excerpt, LogCopier

    def scan(source: Source, _: Saved | None) -> Scan:
        return Scan("7", "start", None, None, [], MessageIndex(Chunks(source), Blocks.empty(0), []), [])

    class OtherCopier(LogCopier):
        def copy_records(self, excerpt: Excerpt) -> bool:
            out = self.writer.out
            out.put(b"OTHER....")
            out.put((tmp_path / "a.oth").read_bytes()[9:])
            out.patch(5, b"%4d" % (out.tell() - 9))
            return True

    other = Format(
        "other",
        "Another format",
        (".oth",),
        lambda s: s.head.startswith(b"OTHER"),
        scan,
        create=FormatWriter,
        copier=OtherCopier,
    )
    monkeypatch.setattr(registry.FORMATS, "added", lambda: {"other": other})
    monkeypatch.setattr(two_pass, "KEPT", -1)
    (tmp_path / "a.oth").write_bytes(b"OTHER  -1" + bytes(1234))
    with running(tmp_path) as client:
        (log,) = client.ask("/logs").json["logs"]
        assert (log["name"], log["format"], log["version"]) == ("a.oth", "other", "7")
        assert {"oth", "other"} <= set(client.ask("/").json["formats"])
        for wish in ({}, {"format": "oth"}, {"format": "other"}):
            assert client.slice("a.oth", **wish).body == b"OTHER1234" + bytes(1234)


def test_every_output_that_is_one_file_can_be_requested() -> None:
    assert {"mcap", "bag", "ulg", "bddf", "arrow", "ndjson", "rosbag", "ulog"} <= kinds().keys()
    assert not {"jpg", "ply"} & kinds().keys()


def test_arrow_needs_a_single_channel(client: Client) -> None:
    reply = client.slice("rosbag.bag", format="arrow", topic="/imu")
    table = pa.ipc.open_file(io.BytesIO(reply.body)).read_all()
    assert table.num_rows
    assert reply.headers["content-type"] == "application/vnd.apache.arrow.file"
    assert reply.headers["content-disposition"] == 'attachment; filename="rosbag.arrow"'
    several = client.slice("rosbag.bag", format="arrow")
    assert several.status == 400
    assert several.error.endswith("channels do not fit into one .arrow file: choose one channel")


def test_lines_are_those_of_cat(client: Client, folder: Path, run: Any) -> None:
    reply = client.slice("rosbag.bag", format="ndjson", topic="/gps/fix")
    assert (
        reply.body.decode() == run("cat", folder / "rosbag.bag", "-t", "/gps/fix", "--format", "ndjson").out
    )
    assert reply.headers["content-type"] == "application/x-ndjson"


def test_skipped_content_is_counted_in_a_header(client: Client, folder: Path, tmp_path: Path) -> None:
    reply = client.slice("bddf.bddf", format="mcap")
    done = logreel.convert(folder / "bddf.bddf", tmp_path / "a.mcap", raw=True)
    assert int(reply.headers["logreel-skipped"]) == len(done.skipped) > 0
    assert client.slice("ulog.ulg").headers["logreel-skipped"] == "0"


def test_a_damaged_log_is_served_with_the_number_of_losses(folder: Path, tmp_path: Path) -> None:
    data = (folder / "rosbag.bag").read_bytes()
    (tmp_path / "cut.bag").write_bytes(data[: len(data) * 2 // 3])
    with running(tmp_path) as client:
        reply = client.slice("cut.bag", topic="/imu")
        told = client.ask(f"/logs/{client.ids()['cut.bag']}").json
    assert reply.status == 200
    assert int(reply.headers["logreel-lost"]) == sum(one["lost"] for one in told["problems"]) > 0
    logreel.slice(tmp_path / "cut.bag", tmp_path / "due.bag", topics="/imu")
    assert reply.body == (tmp_path / "due.bag").read_bytes()


def test_info_equals_the_json_of_the_verb(client: Client, folder: Path, run: Any) -> None:
    for name, log in client.ids().items():
        told = run("info", folder / name, "--json").json
        assert client.ask(f"/logs/{log}").json == {**told, "path": name}


def test_fifty_clients_at_once_get_correct_slices(tmp_path: Path) -> None:
    from support.samples.rosbag.builder import drive
    from support.samples.ulog.builder import flight

    (tmp_path / "a.ulg").write_bytes(flight(12))
    (tmp_path / "b.bag").write_bytes(drive(7.0))
    due = {}
    for name in ("a.ulg", "b.bag"):
        for n in range(5):
            wish = {"start": f"+{n}s", "end": f"+{n + 2 if name == 'b.bag' else 8}s"}
            logreel.slice(tmp_path / name, tmp_path / f".{n}{name}", **wish)
            due[name, n] = wish, (tmp_path / f".{n}{name}").read_bytes()
    with running(tmp_path) as client, ThreadPoolExecutor(50) as pool:
        paths = {key: client.path(key[0], **wish) for key, (wish, _) in due.items()}
        keys = list(due) * 5
        replies = list(pool.map(lambda key: client.ask(paths[key]), keys))
    for key, reply in zip(keys, replies, strict=True):
        assert reply.status == 200
        assert reply.body == due[key][1]


def test_the_openapi_document_matches_the_service(client: Client) -> None:
    document = client.ask("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/", "/openapi.json", "/logs", "/logs/{id}", "/logs/{id}/slice", "/logs/{id}/index", "/logs/{id}/text",
        "/index", "/query", "/text", "/slice",
    }  # fmt: skip
    asked = document["paths"]["/logs/{id}/slice"]["get"]
    names = [one["name"] for one in asked["parameters"] if "name" in one]
    assert names == [
        "topic", "exclude", "channel", "type", "service", "from_nsec", "from_sec", "to_nsec", "to_sec", "start", "end",
        "format",
    ]  # fmt: skip
    assert asked["parameters"][-1]["schema"]["enum"] == client.ask("/").json["formats"] == sorted(kinds())

    def resolve(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                found = document
                for key in value["$ref"].removeprefix("#/").split("/"):
                    found = found[key]
            for one in value.values():
                resolve(one)
        elif isinstance(value, list):
            for one in value:
                resolve(one)

    resolve(document)
    schemas = document["components"]["schemas"]
    for path, schema in (("/logs", "List"), ("/", "Index")):
        assert set(client.ask(path).json) == set(schemas[schema]["properties"])
    (first, *_) = client.ask("/logs").json["logs"]
    assert set(first) == set(schemas["Log"]["properties"])
    told = client.ask(f"/logs/{first['id']}").json
    assert set(told) == set(schemas["Info"]["properties"])
    assert [set(one) for one in told["segments"]] == [set(schemas["Segment"]["properties"])]
    assert set(client.ask("/logs/x").json) == set(schemas["Error"]["properties"])
    assert json.loads(json.dumps(document)) == document
