"""The questions that the data service of Spot answers, asked of files over HTTP, and queries of many logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import logreel
from logreel.outputs.serve import catalogue as contents_module
from logreel.outputs.serve import queries
from support.harness.serving import Client, Reply, running
from support.samples.bddf.builder import T0, Builder, comment, event, num, raw, text_message, walk
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight, tiny

SECOND = 10**9
SERVICE, TYPE = "bosdyn:grpc:service", "bosdyn:message-type"


def page(begin: int, service: str = "robot-state", channel: str = "camera") -> bytes:
    """Return a page of a robot's data buffer, ten seconds from *begin*: calls, blobs, text, comments and events."""
    out = Builder({"bosdyn:robot-serial-number": "spot-1"})
    calls = []
    for kind in ("requests", "responses"):
        name = f"bosdyn.api.{'RobotState'}{kind.capitalize()[:-1]}"
        content = raw(4, raw(1, "application/protobuf") + raw(2, name) + num(3, False))
        calls.append(out.series({SERVICE: service, TYPE: name}, content, kind=f"bosdyn:grpc:{kind}"))
    blobs = out.messages(channel, "image/jpeg", "site.Picture")
    lines, notes = out.messages("bosdyn.api.TextMessage"), out.messages("bosdyn.api.OperatorComment")
    events = out.messages("bosdyn.api.Event")
    speed = out.pods({"client": "base", "schema": "body", "varname": "speed"}, "float32", units="m/s")
    for n in range(10):
        now = begin + n * SECOND
        out.data(calls[0], now, b"").data(calls[1], now + 1000, b"").data(blobs, now, b"\xff\xd8\xff")
        out.data(lines, now, text_message(f"line {n}", now, 1 + n % 4, "motors" if n % 2 else "arm"))
        out.values(speed, now, "float32", [n])
        if n % 5 == 0:
            out.data(notes, now, comment(f"comment {n}", now))
            out.data(events, now, event("stairs", f"flight {n}", now, now + SECOND))
    return out.bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages of a robot, a minute apart, a bag of another time, and a log whose clock counts from its boot."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "a.bddf").write_bytes(page(T0))
    (folder / "b.bddf").write_bytes(page(T0 + 60 * SECOND, "power", "thermal"))
    (folder / "c.bag").write_bytes(drive(2))
    (folder / "d.ulg").write_bytes(tiny())
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with running(folder) as client:
        yield client


def ask(client: Client, path: str, **wish: Any) -> Reply:
    return client.ask(f"{path}?{urlencode(wish, doseq=True)}")


def answer(client: Client, path: str, **wish: Any) -> Any:
    reply = ask(client, path, **wish)
    assert reply.status == 200, reply
    return reply.json


def names(found: Any) -> list[str]:
    return [log["name"] for log in found["logs"]]


# ------------------------------------------------------------------------ the questions of the data service


def test_get_data_index_lists_kinds_of_data_with_their_pages_and_times(client: Client) -> None:
    found = answer(client, "/index", from_nsec=T0, to_nsec=T0 + 100 * SECOND)
    kinds = {kind["topic"]: kind for kind in found["kinds"]}
    ids = client.ids()
    assert names(found) == ["a.bddf", "b.bddf"]
    assert kinds["camera"]["facts"]["channel"] == ["camera"]
    assert kinds["camera"]["logs"] == [ids["a.bddf"]]
    text = kinds["bosdyn.api.TextMessage"]
    assert (text["type"], text["messages"], text["logs"]) == (
        "bosdyn.api.TextMessage",
        20,
        [ids["a.bddf"], ids["b.bddf"]],
    )
    assert (text["from_nsec"], text["to_nsec"]) == (T0, T0 + 69 * SECOND + 1)
    (skipped,) = found["skipped"]
    assert (skipped["name"], skipped["why"]) == ("d.ulg", "its clock has no known offset to UTC")


@pytest.mark.parametrize(
    ("wish", "topics"),
    [
        ({"channel": "camera"}, ["camera"]),
        ({"channel": ["camera", "thermal"]}, ["camera", "thermal"]),
        ({"type": "site.Picture"}, ["camera", "thermal"]),
        ({"type": "site.Picture", "channel": "th*"}, ["thermal"]),
        ({"service": "power"}, ["power/bosdyn.api.RobotStateRequest", "power/bosdyn.api.RobotStateResponse"]),
        ({"service": "power", "type": "*Request"}, ["power/bosdyn.api.RobotStateRequest"]),
        ({"topic": "schema=body,client=base"}, ["base/body/speed"]),
        ({"topic": "units=m/s"}, ["base/body/speed"]),
        (
            {"type": ["bosdyn.api.Event", "bosdyn.api.OperatorComment"]},
            ["bosdyn.api.OperatorComment", "bosdyn.api.Event"],
        ),
        ({"channel": "/imu"}, ["/imu"]),
        ({"service": "none"}, []),
    ],
)
def test_get_data_index_selects_blobs_signals_calls_events_and_comments(
    client: Client, wish: dict[str, Any], topics: list[str]
) -> None:
    assert [kind["topic"] for kind in answer(client, "/index", **wish)["kinds"]] == topics


def test_get_data_index_of_one_page(client: Client, folder: Path) -> None:
    log_id = client.ids()["a.bddf"]
    found = answer(client, f"/logs/{log_id}/index", from_sec=T0 // SECOND + 5)
    kinds = {kind["topic"]: kind for kind in found["kinds"]}
    with logreel.open(folder / "a.bddf") as log:
        for topic, kind in kinds.items():
            times = log[topic].times
            times = times[times >= T0 + 5 * SECOND]
            assert (kind["messages"], kind["from_nsec"], kind["to_nsec"]) == (
                len(times),
                times[0],
                times[-1] + 1,
            )
    assert ask(client, f"/logs/{log_id}/index", service="x").error.endswith(
        "no channel with service 'x'; there are: robot-state"
    )
    assert ask(client, f"/logs/{log_id}/index", service="x").status == 404


def test_get_data_pages_of_a_time_range(client: Client) -> None:
    for wish, due in (
        ({"from_nsec": T0 + 9 * SECOND, "to_nsec": T0 + 60 * SECOND}, ["a.bddf"]),
        ({"from_nsec": T0 + 9 * SECOND, "to_nsec": T0 + 60 * SECOND + 1}, ["a.bddf", "b.bddf"]),
        ({"from_nsec": T0 + 10 * SECOND, "to_nsec": T0 + 60 * SECOND}, []),
        ({"to_sec": T0 // SECOND}, []),
        ({"from_sec": f"{T0 // SECOND}.5", "type": "site.*"}, ["a.bddf", "b.bddf"]),
    ):
        assert names(answer(client, "/query", **wish)) == due, wish
    log = answer(client, "/query", to_nsec=T0 + 2 * SECOND, channel="camera")["logs"][0]
    assert (log["messages"], log["from_nsec"], log["to_nsec"]) == (2, T0, T0 + SECOND + 1)
    assert [channel["topic"] for channel in log["channels"]] == ["camera"]


def test_get_data_buffer_status_counts_pages_bytes_and_kinds(client: Client, folder: Path) -> None:
    found = answer(client, "/index", topic="encoding=*")
    assert names(found) == ["a.bddf", "b.bddf", "c.bag", "d.ulg"]
    assert [log["size"] for log in found["logs"]] == [
        path.stat().st_size for path in sorted(folder.iterdir())
    ]
    blobs = {(kind["type"], *kind["facts"].get("channel", ())) for kind in found["kinds"]}
    assert {("site.Picture", "camera"), ("site.Picture", "thermal")} < blobs


def test_get_events_comments_returns_both_in_a_time_range(client: Client) -> None:
    found = answer(
        client, "/text", kind=["event", "comment"], from_nsec=T0 + SECOND, to_nsec=T0 + 61 * SECOND
    )
    assert [(line["kind"], line["text"], line["time_ns"] - T0) for line in found["lines"]] == [
        ("comment", "comment 5", 5 * SECOND),
        ("event", "stairs: flight 5", 5 * SECOND),
        ("comment", "comment 0", 60 * SECOND),
        ("event", "stairs: flight 0", 60 * SECOND),
    ]


def test_get_events_comments_with_a_limit_says_that_there_are_more(client: Client) -> None:
    lines, after = [], {}
    for _ in range(100):
        found = answer(client, "/text", kind="event", limit=3, **after)
        lines += found["lines"]
        assert len(found["lines"]) <= 3
        if found["next"] is None:
            break
        after = {"after": found["next"]}
    assert lines == answer(client, "/text", kind="event")["lines"]
    assert [line["text"] for line in lines][:4] == ["stairs: flight 0", "stairs: flight 5"] * 2


def test_text_messages_are_selected_by_level_and_source(client: Client) -> None:
    log_id = client.ids()["a.bddf"]
    worse = answer(client, f"/logs/{log_id}/text", level="error", kind="text", source="motors")["lines"]
    assert [line["text"] for line in worse] == ["line 3", "line 7"]
    assert {line["level"] for line in worse} == {3}
    other = answer(client, f"/logs/{log_id}/text", source="re:mot.*|operator", end="+1.5s")["lines"]
    assert [line["text"] for line in other] == ["comment 0", "line 1"]


@pytest.mark.parametrize(
    ("wish", "slice_of"),
    [
        (
            {"from_nsec": T0 + SECOND, "to_nsec": T0 + 4 * SECOND},
            {"start": T0 + SECOND, "end": T0 + 4 * SECOND},
        ),
        ({"channel": "camera"}, {"topics": "camera"}),
        ({"type": "site.Picture"}, {"topics": "type=site.Picture"}),
        ({"service": "robot-state"}, {"topics": "service=robot-state"}),
        ({"service": "robot-state", "exclude": "type=*Request"}, {"topics": "type=*Response"}),
        (
            {"channel": ["camera"], "from_sec": T0 // SECOND + 3},
            {"topics": "camera", "start": T0 + 3 * SECOND},
        ),
    ],
)
def test_bulk_data_is_a_bddf_of_the_wanted_channels_and_interval(
    client: Client, folder: Path, tmp_path: Path, wish: dict[str, Any], slice_of: dict[str, Any]
) -> None:
    reply = client.slice("a.bddf", **wish)
    assert reply.status == 200, reply
    logreel.slice(folder / "a.bddf", tmp_path / "a.bddf", **slice_of)
    assert reply.body == (tmp_path / "a.bddf").read_bytes()


def test_bulk_data_of_all_pages_is_one_bddf(client: Client, folder: Path, tmp_path: Path) -> None:
    span = {"from_nsec": T0 + 8 * SECOND, "to_nsec": T0 + 62 * SECOND}
    reply = ask(client, "/slice", type="site.Picture", **span)
    assert reply.status == 200, reply
    with logreel.open([folder / "a.bddf", folder / "b.bddf"]) as both:
        logreel.slice(
            both,
            tmp_path / "due.bddf",
            topics="type=site.Picture",
            start=span["from_nsec"],
            end=span["to_nsec"],
        )
    assert reply.body == (tmp_path / "due.bddf").read_bytes()
    assert reply.headers["logreel-skipped"] == "1"
    with logreel.open(reply.body) as found:
        assert {ch.topic: len(ch) for ch in found.channels.values()} == {"camera": 2, "thermal": 2}
    lines = ask(client, "/slice", type="bosdyn.api.Event", format="ndjson").body.splitlines()
    assert len(lines) == 4


def test_a_slice_of_all_logs_says_what_it_cannot_do(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = ask(client, "/slice", type="none")
    assert (nothing.status, nothing.error) == (422, "no log has such messages")
    mixed = ask(client, "/slice", topic="*")
    assert mixed.status == 400
    assert "bddf" in mixed.error
    assert "/" not in mixed.error.replace("/query", "")
    monkeypatch.setattr(queries, "JOINED", 1)
    many = ask(client, "/slice", type="site.Picture")
    assert (many.status, many.error.partition(":")[0]) == (400, "more than 1 logs have such messages")
    monkeypatch.setattr(queries, "EXAMINED", 1)
    monkeypatch.setattr(queries, "JOINED", 2)
    assert "there are too many logs to look at" in ask(client, "/slice", type="site.Picture").error


def test_pages_cannot_be_deleted(client: Client) -> None:
    assert client.ask("/query", method="DELETE").status == 405


# ------------------------------------------------------------------------------------------ checks and limits


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"from_nsec": 1, "from_sec": 1}, "from_nsec and from_sec mean the same bound: give one of them"),
        ({"from_nsec": "1.5"}, "from_nsec '1.5' is no number of integer nanoseconds since 1970"),
        ({"to_nsec": 1 << 63}, "is no number of integer nanoseconds since 1970"),
        ({"to_sec": "1e3"}, "to_sec '1e3' is no number of seconds since 1970"),
        ({"from_nsec": 5, "to_nsec": 4}, "the interval ends before it begins"),
        ({"start": "+1s"}, "no parameter 'start'; there are: from_nsec"),
        ({"type": "re:["}, "not a regular expression"),
        ({"limit": 0}, "the limit '0' is no number from 1 to 1000"),
        ({"limit": "1001"}, "is no number from 1 to 1000"),
        ({"limit": "\u0661"}, "is no number from 1 to 1000"),
        ({"after": "x"}, "after 'x'"),
    ],
)
@pytest.mark.parametrize("path", ["/index", "/query"])
def test_invalid_parameters_are_refused(client: Client, path: str, wish: dict[str, Any], said: str) -> None:
    reply = ask(client, path, **wish)
    assert reply.status == 400
    assert said in reply.error


def test_invalid_parameters_of_text_are_refused(client: Client) -> None:
    log_id = client.ids()["a.bddf"]
    for wish, said in (
        ({"kind": "note"}, "no kind 'note'; there are: text, comment, event"),
        ({"level": "loud"}, "no level 'loud'"),
        ({"source": "re:["}, "not a regular expression"),
        ({"after": log_id}, "is no place in the lines: take it from next"),
        ({"after": "x.1"}, "there is no such log any more"),
        ({"topic": "a"}, "no parameter 'topic'"),
    ):
        for path in ("/text", f"/logs/{log_id}/text"):
            reply = ask(client, path, **wish)
            assert reply.status == 400
            assert said in reply.error


def test_one_bound_is_not_given_twice(client: Client) -> None:
    reply = client.slice("a.bddf", start="+1s", from_nsec=T0)
    assert (reply.status, reply.error) == (400, "from_nsec and start mean the same bound: give one of them")
    # One bound since 1970, the other by the clock of the log.
    assert (
        client.slice("a.bddf", from_nsec=T0 + SECOND, end="+4s").body
        == client.slice("a.bddf", start="+1s", end="+4s").body
    )


def test_times_since_1970_need_a_clock_that_is_known(client: Client) -> None:
    reply = client.slice("d.ulg", from_nsec=T0)
    assert reply.status == 400
    assert "the log does not tell how its clock relates to UTC" in reply.error


def test_times_since_1970_are_those_of_a_log_whose_clock_counts_from_its_boot(tmp_path: Path) -> None:
    (tmp_path / "f.ulg").write_bytes(flight(20))
    with logreel.open(tmp_path / "f.ulg") as log, running(tmp_path) as client:
        assert log.epoch == "boot"
        assert log.utc_offset is not None
        times = log["sensor_gps"].times
        first = int(times[10]) + log.utc_offset
        (found,) = answer(client, "/query", type="sensor_gps", from_nsec=first)["logs"]
        assert (found["from_nsec"], found["start_ns"]) == (first, times[10])
        assert found["messages"] == len(times) - 10
        reply = client.slice("f.ulg", type="sensor_gps", from_nsec=first, format="ndjson")
        assert reply.body.count(b"\n") == len(times) - 10


def test_a_log_that_cannot_be_opened_is_listed_as_skipped(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.bddf").write_bytes((folder / "a.bddf").read_bytes())
    (tmp_path / "z.bag").write_bytes(b"#ROSLOG V9.9\n" + bytes(40))
    with running(tmp_path) as client:
        for path in ("/query", "/index", "/text"):
            found = answer(client, path)
            assert [(one["name"], one["why"]) for one in found["skipped"]] == [
                ("z.bag", "a bag of version 9.9")
            ]
            assert found["next"] is None


# ------------------------------------------------------------------------------------------------- many logs


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 pages of one minute, each with its own service, every second with a channel of its own."""
    folder = tmp_path_factory.mktemp("hundred")
    for n in range(100):
        data = page(T0 + n * 60 * SECOND, f"service-{n % 7}", "camera" if n % 2 else "thermal")
        (folder / f"page{n:03d}.bddf").write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def many(hundred: Path) -> Iterator[Client]:
    with running(hundred) as client:
        yield client


class Facts(NamedTuple):
    """What a query asks of a channel, and its times."""

    topic: str
    type: str
    channel: str | None
    service: str | None
    units: str | None
    times: list[int]


@pytest.fixture(scope="module")
def known(hundred: Path) -> dict[str, list[Facts]]:
    """Return the channels of the 100 pages by name, as the pages themselves have them."""
    found = {}
    for path in sorted(hundred.iterdir()):
        with logreel.open(path) as log:
            found[path.name] = [
                Facts(
                    ch.topic,
                    ch.schema.name,
                    ch.metadata["spec"].get("bosdyn:channel"),
                    ch.metadata["spec"].get(SERVICE),
                    ch.metadata.get("annotations", {}).get("units"),
                    ch.times.tolist(),
                )
                for ch in log.channels.values()
            ]
    return found


WISHES: list[dict[str, Any]] = [
    {},
    {"type": "site.Picture", "channel": "camera"},
    {"service": "service-3"},
    {"service": ["service-3", "service-5"], "type": "*Request"},
    {"topic": "units=m/s", "from_nsec": T0 + 1000 * SECOND, "to_nsec": T0 + 2000 * SECOND},
    {"from_nsec": T0 + 4 * SECOND, "to_nsec": T0 + 125 * SECOND},
    {"exclude": "bosdyn.api.*", "channel": "thermal", "to_sec": T0 // SECOND + 300},
]


@pytest.mark.parametrize("wish", WISHES)
def test_one_query_over_100_logs_finds_what_each_log_has(
    many: Client, known: dict[str, list[Facts]], wish: dict[str, Any]
) -> None:
    due = {}
    since, until = wish.get("from_nsec", 0), wish.get("to_nsec", wish.get("to_sec", 1 << 33) * SECOND)
    for name, channels in known.items():
        counts = {}
        for ch in channels:
            one_of = [
                getattr(ch, key) in ([value] if isinstance(value, str) else value)
                or (str(value).startswith("*") and ch.type.endswith("Request"))
                for key, value in wish.items()
                if key in ("type", "channel", "service")
            ]
            if "topic" in wish:
                one_of.append(ch.units == "m/s")
            if "exclude" in wish:
                one_of.append(not ch.topic.startswith("bosdyn.api."))
            count = sum(since <= time < until for time in ch.times)
            if all(one_of) and count:
                counts[ch.topic] = count
        if counts:
            due[name] = counts
    found = answer(many, "/query", limit=1000, **wish)
    assert (found["skipped"], found["next"]) == ([], None)
    assert {
        log["name"]: {channel["topic"]: channel["messages"] for channel in log["channels"]}
        for log in found["logs"]
    } == due
    kinds = answer(many, "/index", limit=1000, **wish)["kinds"]
    assert {kind["topic"]: kind["messages"] for kind in kinds} == {
        topic: sum(counts.get(topic, 0) for counts in due.values())
        for counts in due.values()
        for topic in counts
    }


def test_pages_of_a_query_join_to_the_whole(many: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(many, "/query", service="service-3", limit=1000)["logs"]
    monkeypatch.setattr(queries, "EXAMINED", 17)
    pages, after = [], {}
    while True:
        found = answer(many, "/query", service="service-3", limit=2, **after)
        assert len(found["logs"]) <= 2
        pages += found["logs"]
        if found["next"] is None:
            break
        after = {"after": found["next"]}
    assert pages == whole
    assert len(whole) == 14


def test_a_request_looks_at_logs_for_a_bounded_time(many: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "SECONDS", 0)
    first = answer(many, "/query")
    assert names(first) == ["page000.bddf"]
    assert names(answer(many, "/query", after=first["next"])) == ["page001.bddf"]
    lines = answer(many, "/text", kind="comment")
    assert [line["text"] for line in lines["lines"]] == ["comment 0", "comment 5"]
    assert {line["log"] for line in answer(many, "/text", kind="comment", after=lines["next"])["lines"]} == {
        many.ids()["page001.bddf"]
    }


def test_logs_are_opened_once_for_many_queries(hundred: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    of = contents_module.Contents.of
    monkeypatch.setattr(
        contents_module.Contents, "of", lambda entry, log: opened.append(entry.name) or of(entry, log)
    )
    with running(hundred) as client:
        for wish in WISHES:
            answer(client, "/query", limit=1000, **wish)
        assert len(opened) == 100
        monkeypatch.setattr(contents_module, "CHANNELS", 40)
        answer(client, "/query", limit=1000)
        answer(client, "/query", limit=1000, after=client.ids()["page097.bddf"])


def test_a_changed_log_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.bddf").write_bytes(page(T0))
    with running(tmp_path) as client:
        assert answer(client, "/query", service="robot-state")["logs"]
        (tmp_path / "new").write_bytes(page(T0, "power", "other"))
        (tmp_path / "new").replace(tmp_path / "a.bddf")
        assert not answer(client, "/query", service="robot-state")["logs"]
        assert answer(client, "/query", service="power")["logs"]


def test_answers_have_the_members_of_the_openapi_document(client: Client) -> None:
    schemas = client.ask("/openapi.json").json["components"]["schemas"]
    log_id = client.ids()["a.bddf"]

    def members(name: str) -> set[str]:
        return set(schemas[name]["properties"])

    for path in ("/index", f"/logs/{log_id}/index"):
        found = answer(client, path)
        assert set(found) == members("Kinds")
        assert set(found["kinds"][0]) == members("Kind")
        assert set(found["logs"][0]) == members("Part")
    found = answer(client, "/query", from_nsec=T0)
    assert set(found) == {*schemas["Found"]["properties"]}
    assert set(found["logs"][0]) == members("Part") | {"channels"}
    assert set(found["logs"][0]["channels"][0]) == members("ChannelPart")
    assert set(found["skipped"][0]) == members("Skipped")
    for path in ("/text", f"/logs/{log_id}/text"):
        found = answer(client, path)
        assert set(found) == members("Lines")
        assert set(found["lines"][0]) == members("Line")


def test_the_sample_patrol_has_comments_events_and_text(tmp_path: Path) -> None:
    (tmp_path / "w.bddf").write_bytes(walk())
    with running(tmp_path) as client:
        found = answer(client, "/text")["lines"]
    assert {line["kind"] for line in found} == {"text", "comment", "event"}
    assert [line["time_ns"] for line in found] == sorted(line["time_ns"] for line in found)


def test_one_slice_over_100_logs_has_the_messages_of_each(many: Client) -> None:
    reply = ask(many, "/slice", type="bosdyn.api.OperatorComment")
    assert reply.status == 200, reply
    with logreel.open(reply.body) as found:
        assert found["bosdyn.api.OperatorComment"].times.tolist() == [
            T0 + (60 * n + k) * SECOND for n in range(100) for k in (0, 5)
        ]
