"""What is written from an encrypted bag: only with ``decrypt=True`` or ``--decrypt``, and with a note."""

from __future__ import annotations

import inspect
import io
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.fleet.jobs import do_job
from logreel.formats.rosbag import chunks
from logreel.io.source import Source
from logreel.log.log import Log
from logreel.log.scan import Saved, Scan
from logreel.log.source_files import refusal
from logreel.ops.add import add_attachments, add_metadata
from logreel.ops.replay.player import play_growing
from logreel.outputs.registry import OUTPUTS
from logreel.outputs.sinks import SINKS
from logreel.outputs.sinks.stdout import FrameLines, Null, Stdout
from logreel.outputs.view.channels import TableStream
from logreel.outputs.view.view_log import ViewLog
from logreel.registry import index_cache
from support.builders.bag_secret import KEY, encrypted
from support.builders.ulog_camera import PICTURE
from support.formats import builtin_formats
from support.harness.cli_runner import Run
from support.harness.commands import commands
from support.harness.serving import running
from support.samples.rosbag.builder import version_2_0
from support.samples.rosbag.drive import messages
from support.samples.ulog.builder import tiny

REFUSED, NOTE = "is encrypted", "what was written from it is not"
SPEC = """
rate = 10
[sync]
max_error = "1s"
[features.action]
fields = ["/cmd_vel.linear.x"]
"""


@pytest.fixture(scope="module")
def secret() -> bytes:
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    return encrypted(list(messages(1.0)), "lz4", chunk_bytes=40_000)


@pytest.fixture(autouse=True)
def bag(secret: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only file of the working folder; GnuPG is replaced by a function that returns the key."""
    monkeypatch.setattr(chunks, "_symmetric_key", lambda given: KEY)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "secret.bag"
    path.write_bytes(secret)
    return path


def files() -> list[str]:
    return sorted(one.name for one in Path().iterdir())


# ------------------------------------------------------------------------------------------------ Python

#: What writes messages of a log: each gets the open log and returns its result.
WRITERS: dict[str, Callable[[Log], Any]] = {
    "slice": lambda log: logreel.slice(log, "o.bag"),
    "slice of a few messages": lambda log: logreel.slice(log, "o.bag", where="angular_velocity.z > 0"),
    "slice to a stream": lambda log: logreel.slice(log, io.BytesIO()),
    "sort": lambda log: logreel.sort(log, "o.bag"),
    "merge": lambda log: logreel.merge([log], "o.bag"),
    "merge to MCAP": lambda log: logreel.merge([log], "o.mcap", topics="/imu"),
    "split": lambda log: logreel.split(log, "parts", every=10**9),
    "edit": lambda log: logreel.edit(log, "o.bag", rename={"/imu": "/other"}),
    "migrate": lambda log: logreel.migrate(log, "o.bag"),
    "recover": lambda log: logreel.recover(log, "o.bag"),
    "convert without change": lambda log: logreel.convert(log, "o.mcap", raw=True),
    "convert to ULog": lambda log: logreel.convert(log, "o.ulg", topics="/imu"),
    "convert to a table": lambda log: logreel.convert(log, "o.csv", topics="/imu"),
    "convert to a long table": lambda log: logreel.convert(log, "o.csv", topics="/imu", layout="long"),
    "convert to an aligned table": lambda log: logreel.convert(
        log, "o.csv", topics="/imu", align="previous", rate=10
    ),
    "convert to a stream": lambda log: logreel.convert(log, io.BytesIO(), format="csv", topics="/imu"),
    "plot": lambda log: logreel.plot(log, "/imu.linear_acceleration.x").save("o.html"),
    "report": lambda log: logreel.report(log).save("o.html"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_functions_write_from_an_encrypted_log_only_if_it_was_opened_for_that(bag: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"secret.bag: {REFUSED} .*logreel.open\(path, decrypt=True\)"):
        WRITERS[name](logreel.open(bag))
    assert files() == ["secret.bag"]
    done = WRITERS[name](logreel.open(bag, decrypt=True))
    for one in done if isinstance(done, list) else [done]:
        assert not hasattr(one, "notes") or [text for text in one.notes if NOTE in text], one


def test_an_encrypted_log_is_judged_for_others_only_if_it_is_wanted(bag: Path) -> None:
    with pytest.raises(UsageError, match=REFUSED):
        logreel.ci(bag, {})
    (verdict,) = logreel.ci(bag, {"min_messages": 10**6}, decrypt=True).runs
    assert verdict.broken


#: Public functions that write nothing of a log.
READING = {
    "pictures", "clouds", "positions",
    "open", "open_growing", "known_formats", "live_source", "sink", "align", "check", "compare", "diff", "du", "health",
    "info", "learn_contract", "notes", "params", "scan_polars", "sql", "stats", "summary", "transforms", "verify",
}  # fmt: skip
#: Public functions that are tested here on their own; *create* and *record* write what is not in a log.
ALONE = {"play", "view", "dataset", "geotag", "create", "record", "ci"}


def test_every_public_function_that_writes_is_tested_here() -> None:
    public = {name for name in logreel.__all__ if inspect.isfunction(getattr(logreel, name))}
    tested = {name.split()[0] for name in WRITERS}
    assert tested | READING | ALONE == public, "a new function: what does it write of an encrypted log?"
    for name in READING:
        found = {*inspect.signature(getattr(logreel, name)).parameters} & {"dst", "out", "folder", "force"}
        assert not found, name


@pytest.mark.parametrize("suffix", OUTPUTS.own())
def test_convert_refuses_an_encrypted_log_for_every_output(bag: Path, suffix: str) -> None:
    for name in (f"o{suffix}", f"o{suffix}/"):
        with pytest.raises(UsageError):
            logreel.convert(bag, name)
    with pytest.raises(UsageError, match=REFUSED):
        logreel.convert(bag, f"o{OUTPUTS.own()[suffix].names[0]}")
    assert files() == ["secret.bag"]


def test_logs_derived_from_one_that_may_be_decrypted_may_be_too(bag: Path, tmp_path: Path) -> None:
    log = logreel.open(bag, decrypt=True)
    for n, one in enumerate((log.segment(1), log.reread(), pickle.loads(pickle.dumps(log)))):  # noqa: S301
        assert NOTE in "".join(logreel.slice(one, f"{n}.bag").notes)
    (tmp_path / "later.bag").write_bytes(encrypted(list(messages(0.5)), chunk_bytes=4000, padded=5000))
    both = [bag, tmp_path / "later.bag"]
    with pytest.raises(UsageError, match=REFUSED):
        logreel.convert(logreel.open(both), "both.csv", topics="/imu")
    found = logreel.convert(logreel.open(both, decrypt=True), "both.csv", topics="/imu").notes
    assert {text.partition(" is")[0] for text in found if NOTE in text} == {*map(str, both)}


def test_encrypted_log_is_merged_with_a_plain_one_only_if_allowed(bag: Path) -> None:
    Path("plain.bag").write_bytes(version_2_0(list(messages(0.5))))
    Path("other.ulg").write_bytes(tiny())
    for other, out in (("plain.bag", "o.bag"), ("other.ulg", "o.mcap")):
        with pytest.raises(UsageError, match=rf"secret.bag: {REFUSED}"):
            logreel.merge([other, bag], out, align="start")
        assert files() == ["other.ulg", "plain.bag", "secret.bag"]
    for other, out in (("plain.bag", "o.bag"), ("other.ulg", "o.mcap")):
        done = logreel.merge([other, logreel.open(bag, decrypt=True)], out, align="start")
        assert len([text for text in done.notes if NOTE in text]) == 1, out


def test_encrypted_bag_is_not_continued_nor_changed_in_place(bag: Path) -> None:
    before = bag.read_bytes()
    with pytest.raises(LogError, match="encrypted"):
        logreel.create(bag, mode="a")
    for change in (lambda: add_metadata(bag, {"a": "b"}), lambda: add_attachments(bag, {"a": b"b"})):
        with pytest.raises(LogError):
            change()
    assert (bag.read_bytes(), files()) == (before, ["secret.bag"])


def test_no_index_is_kept_of_an_encrypted_log(
    bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of formats that keep one of their other logs."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LOGREEL_CACHE", str(folder))
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    path, real = tmp_path / "a.ulg", builtin_formats()["ulog"]
    path.write_bytes(tiny())
    logreel.open(path)
    assert [one.name for one in folder.iterdir()]
    shutil.rmtree(folder)

    def secret(source: Source, saved: Saved | None) -> Scan | None:
        scan = real.scan(source, saved)
        return None if scan is None else replace(scan, encryption="by a test")

    monkeypatch.setattr(index_cache, "find_format", lambda source: replace(real, scan=secret))
    source = Source.open(path)
    scan = secret(source, None)
    assert scan is not None
    assert index_cache.keep(source, real, scan) is scan
    for name in (path, bag):
        with pytest.raises(LogError, match="index"):
            index_cache.write(str(name))
    assert not folder.exists()
    assert files() == ["a.ulg", "secret.bag"]


class _Kept(logreel.Sink):
    """A sink that keeps the topics that it gets."""

    follows = True

    def __init__(self) -> None:
        self.topics: set[str] = set()

    def message(self, message: logreel.Message) -> None:
        self.topics.add(message.channel.topic)


def test_encrypted_logs_are_played_to_other_programs_only_if_allowed(bag: Path) -> None:
    logreel.play(bag, rate=0, on_message=lambda message: None).run()
    assert next(iter(logreel.Player(bag, rate=0))).data
    for to in (Null(), FrameLines(io.BytesIO()), Stdout(out=io.BytesIO())):
        logreel.play(bag, rate=0, sink=to).run()
    for make in (_Kept, lambda: Stdout("raw", io.BytesIO())):
        with pytest.raises(UsageError, match=REFUSED):
            logreel.Player(bag, sink=make())
    for name, make_sink in SINKS.own().items():
        assert make_sink.sends == (name in ("foxglove", "rerun", "ros"))  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=REFUSED):
        play_growing(logreel.open(bag), _Kept(), choose=lambda log: [*log.channels.values()], rate=0)
    kept = _Kept()
    logreel.play(logreel.open(bag, decrypt=True), rate=0, sink=kept).run()
    assert "/imu" in kept.topics


def test_several_files_with_shifted_clocks_keep_the_note(bag: Path, tmp_path: Path) -> None:
    (tmp_path / "later.bag").write_bytes(encrypted(list(messages(0.5)), chunk_bytes=4000, padded=5000))
    log = logreel.open([bag, tmp_path / "later.bag"], align="+1h", decrypt=True)
    assert len([text for text in logreel.convert(log, "o.mcap").notes if NOTE in text]) == 2


def test_pictures_get_positions_of_an_encrypted_log_only_if_allowed(bag: Path) -> None:
    Path("pictures").mkdir()
    Path("pictures/a.jpg").write_bytes(PICTURE)
    with pytest.raises(UsageError, match=REFUSED):
        logreel.geotag(bag, "pictures", "o", by="order")
    assert files() == ["pictures", "secret.bag"]
    logreel.geotag(logreel.open(bag, decrypt=True), "pictures", "o", by="order")
    assert [one.name for one in Path("o").iterdir()] == ["a.jpg"]


def test_edit_without_writing_needs_no_permission(bag: Path) -> None:
    assert logreel.edit(bag, None, rename={"/imu": "/other"}, dry_run=True).changes
    assert files() == ["secret.bag"]


def test_text_of_a_plot_needs_no_permission(bag: Path) -> None:
    pytest.importorskip("plotext", reason="needs logreel[plot]")
    assert logreel.plot(bag, "/imu.linear_acceleration.x").text()


def test_queries_of_encrypted_logs_keep_nothing_on_disk(bag: Path) -> None:
    pytest.importorskip("duckdb", reason="needs logreel[sql]")
    for decrypt in (False, True):
        found = logreel.sql(
            "SELECT current_setting('temp_directory') AS t", logreel.open(bag, decrypt=decrypt)
        )
        assert (found["t"].to_pylist() == [""]) != decrypt


def test_dataset_leaves_encrypted_logs_out_unless_allowed(bag: Path) -> None:
    pytest.importorskip("av")
    Path("spec.toml").write_text(SPEC)
    with pytest.raises(UsageError, match=r"decrypt=True \(--decrypt\)"):
        logreel.dataset(bag, "refused", "spec.toml", to="hdf5")
    assert not list(Path("refused").rglob("*.hdf5"))
    pytest.importorskip("h5py")
    done = logreel.dataset(bag, "out", "spec.toml", to="hdf5", decrypt=True)
    assert done.frames
    assert NOTE in "".join(done.notes)


class _Here:
    """An engine of fleets that works in this process."""

    def run(self, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for job in jobs:
            yield job, do_job(job)

    def close(self) -> None:
        """Nothing is open."""


def test_fleet_writes_encrypted_logs_only_if_allowed_and_tries_refused_ones_again(bag: Path) -> None:
    refused = logreel.fleet.ingest(bag, "fleet", engine=_Here())
    assert (refused.rows, list(refused.failed)) == (0, [str(bag)])
    assert REFUSED in refused.failed[str(bag)]
    assert "decrypt=True (--decrypt)" in refused.failed[str(bag)]
    assert not list(Path("fleet").rglob("part-*.parquet"))
    done = logreel.fleet.ingest(bag, "fleet", engine=_Here(), decrypt=True)
    assert (done.rows, done.failed) == (logreel.open(bag).message_count, {})


def test_service_sends_slices_of_encrypted_logs_only_if_allowed(bag: Path) -> None:
    for decrypt in (False, True):
        with running(bag, decrypt=decrypt) as client:
            (about,) = client.ask("/logs").json["logs"]
            assert (about["channels"] is None) != decrypt
            assert client.ask(f"/logs/{about['id']}").status == (200 if decrypt else 400)
            for path in ("/text", "/index", "/query"):
                assert (b"/imu" in client.ask(path).body) == (decrypt and path != "/text"), path
            for wish in ({}, {"format": "csv", "topic": "/imu"}):
                reply = client.slice("secret.bag", **wish)
                assert reply.status == (200 if decrypt else 400), reply
                assert decrypt or REFUSED in reply.error


def test_viewer_shows_encrypted_logs_but_saves_parts_only_if_allowed(bag: Path) -> None:
    with pytest.raises(UsageError, match=REFUSED):
        TableStream(logreel.open(bag), ["/imu"], None, None, ".csv")
    for decrypt in (False, True):
        one = ViewLog("0", bag, lambda event: None, decrypt=decrypt)
        assert one.ready.wait(30)
        with one.open() as log:
            assert (refusal(log) is None) == decrypt
        # Nothing of it is kept in the cache folder.
        assert one._identity() is None
        one.close()
        away = ViewLog("0", bag, lambda event: None, decrypt=decrypt, leaves=True)
        assert away.ready.wait(30)
        assert (REFUSED in (away.error or "")) != decrypt
        away.close()


def test_viewer_for_other_machines_knows_that_it_is(bag: Path) -> None:
    for host, leaves in (("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)):
        viewer = logreel.Viewer([bag], host=host, allow_hosts=["robot"])
        viewer.start()
        (log,) = viewer._session.logs
        assert log.ready.wait(30)
        assert (log.error is not None) == leaves
        viewer.close()


# ------------------------------------------------------------------------------------------------ command line

#: Every command with -o, with arguments that write something of a log. Without -o, most of them print text.
WRITING: dict[str, str] = {
    "info": "secret.bag -o o.txt",
    "summary": "secret.bag -o o.txt",
    "health": "secret.bag -o o.txt",
    "cat": "secret.bag -t /imu -o o.csv",
    "schema": "secret.bag /imu -o o.txt",
    "params": "secret.bag -o o.txt",
    "text": "secret.bag -o o.txt",
    "attachments": "secret.bag -o o",
    "stats": "secret.bag -o o.txt",
    "du": "secret.bag -o o.txt",
    "check": "secret.bag -o o.txt",
    "check to a contract": "secret.bag --update contract.toml",
    "ci": "secret.bag --contract contract.toml -o o",
    "diff": "secret.bag secret.bag -o o.txt",
    "compare": "secret.bag secret.bag -o o.html",
    "tf": "secret.bag -o o.json",
    "sql": "FROM_imu secret.bag -o o.csv",
    "plot": "secret.bag /imu.linear_acceleration.x -o o.html",
    "report": "secret.bag -o o.html",
    "convert": "secret.bag o.csv/",
    "convert to stdout": "secret.bag -o - --format csv -t /imu",
    "convert to MCAP": "secret.bag o.mcap",
    "slice": "secret.bag -o o.bag",
    "slice to stdout": "secret.bag -o - -t /imu",
    "merge": "secret.bag -o o.bag",
    "split": "secret.bag --by-topic -o o",
    "sort": "secret.bag -o o.bag",
    "edit": "secret.bag --rename /imu=/other -o o.bag",
    "recover": "secret.bag -o o.bag",
    "migrate": "secret.bag -o o.bag",
    "migrate to a template": "secret.bag --write-template o.bmr --only-rules",
    "geotag": "secret.bag --pictures pictures -o o --by order",
    "dataset": "secret.bag -o o --spec spec.toml",
    "fleet ingest": "secret.bag -o o",
    "definitions": "add secret.bag",
    "play to another program": "secret.bag --to rerun --set save=o.rrd",
}
#: Commands that take no log, or only their own files; *serve* and *view* are tested above, *add* and *index* below.
OTHERS = {
    "record", "formats", "new-format", "demo", "completion", "fleet query", "fleet status", "fleet report",
    "fleet verify", "fleet remove", "add", "index", "notes", "serve", "view", "play", "verify",
}  # fmt: skip
#: Commands that find nothing to write in this bag.
NO_FILE = {"attachments", "migrate to a template", "definitions"}


def words_of(name: str) -> list[str]:
    verb = name.partition(" to ")[0]
    return [*verb.split(), *(word.replace("FROM_", "FROM ") for word in WRITING[name].split())]


def test_every_command_that_writes_has_the_option_and_is_tested_here() -> None:
    tested = {name.partition(" to ")[0] for name in WRITING}
    for name, command in commands():
        options = {flag for one in command.params for flag in one.opts}
        assert (name in tested) or (name in OTHERS), f"{name} is new: what does it write of an encrypted log?"
        assert ("--decrypt" in options) == (name in tested or name in ("serve", "view")), name
        assert name in tested or "-o" not in options or name in OTHERS, name


@pytest.mark.parametrize("name", WRITING)
def test_verbs_write_from_an_encrypted_log_only_with_decrypt(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "dataset":
        pytest.importorskip("av", reason="needs logreel[lerobot]")
        Path("spec.toml").write_text(SPEC)
    elif name == "geotag":
        Path("pictures").mkdir()
        Path("pictures/a.jpg").write_bytes(PICTURE)
    elif name in ("check to a contract", "ci"):
        Path("contract.toml").write_text("")
    elif name == "play to another program":
        pytest.importorskip("rerun", reason="needs logreel[rerun]")
    monkeypatch.setenv("LOGREEL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("logreel.fleet.ingesting.engine_of", lambda *given: _Here())
    before, (verb, *words) = files(), words_of(name)
    refused = run(verb, *words)
    if verb == "fleet":
        # It goes on with other logs, and writes the reason into its catalogue.
        assert not list(Path("o").rglob("part-*.parquet")), refused
    elif verb == "dataset":
        assert refused.code == 2, refused
        assert not [one for one in Path("o").rglob("*") if one.suffix in (".parquet", ".mp4")]
    else:
        assert refused.code == 2, refused
        assert (refused.out, files()) == ("", before), refused
    assert REFUSED in refused.err
    assert "--decrypt" in refused.err
    done = run(verb, *words, "--decrypt")
    assert done.code in (0, 3, 4), done
    if "-" not in words and name not in NO_FILE:
        assert NOTE in done.err, done
        assert files() != before or "# learned " in Path("contract.toml").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("info", "secret.bag"),
        ("cat", "secret.bag", "-t", "/imu", "-n", "2"),
        ("cat", "secret.bag", "-t", "/imu", "--format", "csv"),
        ("check", "secret.bag"),
        ("sql", "FROM imu LIMIT 2", "secret.bag"),
        ("sql", "FROM imu LIMIT 2", "secret.bag", "--format", "csv"),
        ("text", "secret.bag"),
        ("tf", "secret.bag"),
        ("play", "secret.bag", "-r", "0", "-t", "/imu", "--to", "stdout"),
        ("diff", "secret.bag", "secret.bag"),
    ],
)
def test_encrypted_logs_are_read_without_permission(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.code in (0, 4), done
    assert done.out


def test_option_is_accepted_for_logs_that_are_not_encrypted(run: Run) -> None:
    assert run("slice", "secret.bag", "-o", "plain.bag", "--decrypt").code == 0
    done = run("slice", "plain.bag", "-o", "o.bag", "--decrypt", "--json")
    assert (done.code, done.json["notes"]) == (0, [])
