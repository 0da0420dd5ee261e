"""Logs in an S3 store (moto on loopback): opened, queried, and as sources of a fleet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.fleet import ingest, plan
from logreel.io.remote import object_store
from support.builders.fleets import fleet_log
from support.builders.many_chunks import many_chunks_mcap
from support.harness.cli_runner import Run

pytest.importorskip("obstore", reason="needs obstore: pip install 'logreel[remote]'")

BUCKET = "test-logs"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Return the address of an S3 server, which takes long to import: not when tests are collected."""
    moto = pytest.importorskip("moto.server", reason="needs moto: pip install 'moto[s3,server]'")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def put(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Return a function that stores an object and returns its address; the bucket is emptied afterwards."""
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    monkeypatch.setattr(object_store, "RETRIES", 0)
    boto3 = pytest.importorskip("boto3", reason="needs boto3: pip install boto3")
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket=BUCKET)

    def store(key: str, content: bytes) -> str:
        client.put_object(Bucket=BUCKET, Key=key, Body=content)
        return f"s3://{BUCKET}/{key}"

    yield store
    for one in client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        client.delete_object(Bucket=BUCKET, Key=one["Key"])
    client.delete_bucket(Bucket=BUCKET)


@pytest.mark.parametrize("key", ["a.mcap", "logs/a b?c#d%20e.mcap", "logs/ü+&=.mcap"])
def test_an_object_is_read_like_a_file(put, key: str, run: Run) -> None:
    content = many_chunks_mcap()
    url = put(key, content)
    with logreel.open(url) as log:
        assert log.name == url
        assert log["/rare"].to_arrow().equals(logreel.open(content)["/rare"].to_arrow())
    assert run("info", "--json", url).json["messages"] == logreel.info(content).messages


def test_missing_objects_and_credentials_are_clear_errors(put, monkeypatch: pytest.MonkeyPatch) -> None:
    url = put("a.mcap", many_chunks_mcap())
    for wrong in (f"{url}x", f"s3://no-such-{BUCKET}/a.mcap"):
        with pytest.raises(LogError, match="no such object") as caught:
            logreel.open(wrong)
        assert "s3cr3t" not in str(caught.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(LogError, match="cannot be reached"):
        logreel.open(url)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    # The address at which a machine in the cloud gives credentials.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(LogError, match="no credentials were found for it; set AWS_ACCESS_KEY_ID"):
        logreel.open(url)


def test_info_of_a_prefix_shows_the_logs_below_it(put, run: Run) -> None:
    urls = [
        put(f"fleet/day/{n}{suffix}", content) for n, (suffix, content) in enumerate(map(fleet_log, range(3)))
    ]
    put("fleet/day/notes.txt", b"no log")
    put("fleet/day/.hidden.mcap", many_chunks_mcap())
    put("fleet2/other.mcap", many_chunks_mcap())
    done = run("info", "--json", f"s3://{BUCKET}/fleet/")
    assert done.code == 0
    assert [line.split('"path": "')[1].split('"')[0] for line in done.out.splitlines()] == urls


def test_a_fleet_of_objects_has_the_rows_of_a_fleet_of_files(put, tmp_path: Path) -> None:
    for number in (0, 2, 4):
        suffix, content = fleet_log(number)
        (tmp_path / f"{number}{suffix}").write_bytes(content)
        put(f"logs/{number}{suffix}", content)
    local = plan([tmp_path / f"{n}{fleet_log(n)[0]}" for n in (0, 2, 4)])
    remote = plan(f"s3://{BUCKET}/logs/")
    assert [task.topics for task in remote.tasks] == [task.topics for task in local.tasks]
    for one, other in zip(remote.tasks, local.tasks, strict=True):
        # As text, in which NaN equals NaN.
        found, due = (
            [str(batch.drop_columns(["log"]).to_pylist()) for batch in task.read()] for task in (one, other)
        )
        assert found == due


def test_ingesting_objects_again_reads_new_and_changed_ones_only(put, tmp_path: Path) -> None:
    urls = [put(f"logs/{n}{suffix}", content) for n, (suffix, content) in ((n, fleet_log(n)) for n in (0, 2))]
    source, dataset = f"s3://{BUCKET}/logs/", tmp_path / "dataset"
    assert ingest(source, dataset, workers=1).new == urls
    assert ingest(source, dataset, workers=1).unchanged == urls
    put("logs/2.mcap", many_chunks_mcap())
    third = put("logs/3.mcap", fleet_log(2)[1])
    done = ingest(source, dataset, workers=1)
    assert (done.unchanged, done.changed, done.new) == (urls[:1], urls[1:], [third])
    assert "s3cr3t" not in "".join(
        path.read_bytes().decode("latin-1") for path in dataset.rglob("*") if path.is_file()
    )


def test_plans_take_no_address_with_secrets() -> None:
    with pytest.raises(UsageError, match="contains no query, user or password") as caught:
        plan("https://example.com/a.bag?X-Amz-Signature=s3cr3t")
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(LogError):
        plan("s3://id:s3cr3t@bucket/logs/")
