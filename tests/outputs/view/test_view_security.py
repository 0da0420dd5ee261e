"""What the viewer refuses, and that names and texts of a log stay data."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from logreel.meaning.layouts import KeptLayouts
from logreel.outputs.view import Viewer, series
from logreel.outputs.view.limits import CHARACTERS, PIXELS
from logreel.outputs.view.viewer import POLICY
from support.builders.sample_logs import hostile, short_flight
from support.harness.serving import LONG, TOKEN
from support.harness.viewing import Page, streams, viewing
from support.samples.ulog.builder import Builder

API = [
    "/api/session", "/api/functions", "/api/events", "/api/logs/0/channels", "/api/logs/0/series",
    "/api/logs/0/overview", "/api/logs/0/message", "/api/logs/0/array", "/api/logs/0/text",
    "/api/logs/0/parameters", "/api/logs/0/problems", "/api/logs/0/charts", "/api/logs/0/pairs",
    "/api/logs/0/spectrogram", "/api/logs/0/export", "/api/logs/0/notes", "/api/layouts",
    "/api/nothing", "/api/", "/api/logs/../session",
]  # fmt: skip
ATTITUDE = {"topic": "vehicle_attitude", "field": "q[0]"}
SCRIPT = "<script>alert(1)</script>"


def scripted() -> bytes:
    """Return a log whose texts, parameters and values of metadata are HTML."""
    out = Builder(start_us=1_000_000).flags().info("sys_name", SCRIPT)
    out.format("odd:uint64_t timestamp;float value;").parameter(SCRIPT[:16], 0.5).subscribe("odd", 0)
    for step in range(4):
        out.data(0, struct.pack("<Qf", 1_000_000 + step, step))
    out.text(3, 1_000_002, f"\"'>{SCRIPT}<img src=x onerror=alert(1)>")
    return out.bytes()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("viewed") / "flight.ulg"
    path.write_bytes(short_flight())
    with viewing(path) as page:
        yield page


# ------------------------------------------------------------------------------------------ who may ask


@pytest.mark.parametrize("path", API)
def test_everything_about_logs_needs_the_token_in_the_header(page: Page, path: str) -> None:
    for token in (None, "wrong", TOKEN[:-1], ""):
        assert page.ask(path, token=token).status == 401
    # An address with the token would stay in histories and reach other programs.
    assert page.ask(f"{path}?token={TOKEN}", token=None).status == 401
    assert page.ask(path, token=None, Cookie=f"token={TOKEN}").status == 401


@pytest.mark.parametrize("path", ["/", "/api/session", "/static/index.html"])
def test_other_hosts_and_pages_of_other_origins_are_refused(page: Page, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""):
        assert page.ask(path, Host=host).status == 403
    for origin in ("http://evil.example", "null", f"http://localhost:{page.port + 1}"):
        assert page.ask(path, Host=f"localhost:{page.port}", Origin=origin).status == 403
    assert "access-control-allow-origin" not in page.ask(path, Origin=f"http://127.0.0.1:{page.port}").headers


def test_only_reading_is_possible(page: Page) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert page.ask("/api/session", method).status == 405
        assert page.ask("/", method).status == 405


NOTES = "/api/logs/0/notes"


def posted(page: Page, content: object, **headers: Any) -> Any:
    """Return the answer to a request that changes notes."""
    return page.ask(NOTES, "POST", body=json.dumps(content).encode(), **headers)


def test_notes_are_the_only_thing_that_is_written(page: Page) -> None:
    note = {"from": 1000.0, "to": None, "title": "x"}
    assert posted(page, {"put": note}, token=None).status == 401
    assert posted(page, {"put": note}, Origin="http://evil.example").status == 403
    assert page.ask("/notes", "POST").status == 405
    assert page.ask(NOTES, "PUT").status == page.ask(NOTES, "DELETE").status == 405
    assert page.json("notes")["notes"] == []
    assert posted(page, {"put": note}).status == 200
    (kept,) = page.json("notes")["notes"]
    assert (kept["from"], kept["to"], kept["title"]) == (1000, None, "x")
    assert posted(page, {"remove": kept["id"]}).json["notes"] == []


@pytest.mark.parametrize(
    "content",
    [
        [], {}, {"put": 3}, {"put": {"from": "x", "title": "x"}}, {"put": {"from": 0.5, "title": "x"}},
        {"put": {"from": 1e300, "title": "x"}}, {"put": {"from": 5, "to": 1, "title": "x"}}, {"remove": 7},
        {"put": {"from": 1, "title": "x" * 300}}, {"put": {"from": 1, "title": "x", "colour": "url(x)"}},
        {"file": [7]}, {"put": {"from": 1, "title": "x", "text": "x" * (2 << 20)}},
    ],
)  # fmt: skip
def test_what_is_no_note_is_refused_with_a_sentence(page: Page, content: object) -> None:
    reply = posted(page, content)
    assert reply.status == 400
    assert reply.json["error"]
    assert page.json("notes")["notes"] == []


def test_layouts_are_kept_in_one_file_whatever_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "flight.ulg", tmp_path / "data"
    path.write_bytes(short_flight())
    monkeypatch.setenv("LOGREEL_DATA", str(folder))
    layout = {"panels": [{"kind": "map"}]}
    named = {"vehicle": "ulog", "name": "../../x"}

    def change(page: Page, content: object, **how: Any) -> Any:
        return page.ask("/api/layouts", "POST", body=json.dumps(content).encode(), **how)

    with viewing(path) as page:
        assert change(page, {**named, "put": layout}, token=None).status == 401
        assert change(page, {**named, "put": layout}, Origin="http://evil.example").status == 403
        assert page.ask("/api/layouts").json == {"layouts": {}, "begin": {}, "why": ""}
        assert not folder.exists()
        assert change(page, {**named, "put": layout}).json["layouts"] == {"ulog": {"../../x": layout}}
        wrong: tuple[dict[str, Any], ...] = (
            {}, named, {**named, "put": 3}, {**named, "put": {}}, {**named, "put": {"panels": [3]}},
            {**named, "put": {**layout, "x": float("nan")}}, {**named, "remove": False},
            {**named, "name": "", "put": layout}, {**named, "name": "x" * 121, "put": layout},
            {**named, "vehicle": 3, "put": layout}, {**named, "name": "other", "begin": True},
            {**named, "put": {**layout, "x": "x" * (1 << 20)}},
        )  # fmt: skip
        for content in wrong:
            reply = change(page, content)
            assert (reply.status, bool(reply.json["error"])) == (400, True), content
        assert change(page, {**named, "begin": True}).json["begin"] == {"ulog": "../../x"}
        renamed = {**named, "name": "y", "put": layout, "replaces": named["name"]}
        reply = change(page, renamed).json
        assert (reply["layouts"], reply["begin"]) == ({"ulog": {"y": layout}}, {"ulog": "y"})
        assert change(page, {**renamed, "replaces": []}).status == 400
        change(page, {**renamed, "name": named["name"], "replaces": "y"})
        assert [one.name for one in folder.iterdir()] == ["layouts.json"]
        assert {one.name for one in tmp_path.iterdir()} == {"flight.ulg", "data"}
    # Another viewer has them, whatever its port. What somebody else wrote into the file is left out.
    with viewing(path) as page:
        assert page.ask("/api/session").json["kept"]["begin"] == {"ulog": "../../x"}
        kept = json.loads((folder / "layouts.json").read_text())
        kept["layouts"]["ulog"]["bad"] = 5
        kept["layouts"]["x"] = 7
        (folder / "layouts.json").write_text(json.dumps(kept))
        assert page.ask("/api/layouts").json["layouts"] == {"ulog": {"../../x": layout}}
        for number in range(99):
            KeptLayouts(folder / "layouts.json").change("ulog", str(number), layout)
        assert "delete one" in change(page, {**named, "name": "one more", "put": layout}).json["error"]
        assert change(page, {**named, "remove": True}).json["begin"] == {}
        (folder / "layouts.json").write_text("nonsense")
        assert page.ask("/api/layouts").json["layouts"] == {}
        assert "move it away" in change(page, {**named, "put": layout}).json["error"]
        assert (folder / "layouts.json").read_text() == "nonsense"
    with viewing(path, host="0.0.0.0", allow_hosts=["robot"]) as page:
        assert "other machines" in page.ask("/api/layouts").json["why"]
        assert change(page, {**named, "put": layout}).status == 400
    monkeypatch.setenv("LOGREEL_DATA", "off")
    with viewing(path) as page:
        assert change(page, {**named, "put": layout}).json["error"] == "LOGREEL_DATA is off"


@pytest.mark.parametrize(
    "content",
    [
        [], {}, {"panels": 3}, {"panels": [3]}, {"panels": [{}] * 65}, {"panels": [{"kind": "plot", "series": 3}]},
        {"panels": [{"kind": "plot", "series": [3]}]}, {"panels": [], "from": "x"}, {"panels": [], "to": 1e300},
        {"panels": [], "from": 5, "to": 1}, {"panels": [], "notes": [3]},
        {"panels": [{"kind": "plot", "series": [{"topic": "x", "sql": "y", "field": "z"}]}]},
        {"panels": [], "at": "x"}, {"panels": [{"kind": "map", "still": 3}]},
        {"panels": [{"kind": "map", "still": "https://example.com/x.png"}]},
        {"panels": [{"kind": "map", "still": "data:image/png;base64,\"onerror=alert(1)"}]},
        {"panels": [{"kind": "map", "still": "data:image/svg+xml;base64,PHN2Zz4="}]},
        {"panels": [{"kind": "map", "still": "data:image/png;base64,iVBORw0KGgo" + "A" * (3 << 20)}]},
    ],
)  # fmt: skip
def test_a_page_of_anything_else_than_panels_is_refused_with_a_sentence(page: Page, content: object) -> None:
    where = "/api/logs/0/document"
    assert page.ask(where, "POST", token=None, body=json.dumps(content).encode()).status == 401
    reply = page.ask(where, "POST", body=json.dumps(content).encode())
    assert reply.status == 400
    assert reply.json["error"]


def test_a_page_with_curves_that_the_log_lacks_is_made_without_them(page: Page) -> None:
    wanted = [{"topic": "x", "field": "y"}, {"topic": "battery_status", "sql": "nothing("}, ATTITUDE]
    content = {
        "panels": [
            {"kind": "plot", "series": wanted, "title": SCRIPT}, {"kind": "map"}, {"kind": "?"},
            {"kind": "map", "title": '"onload="', "still": 'data:";base64,iVBORw0KGgoAAAAN'},
            {"kind": "array", "topic": "vehicle_status", "field": "nothing"},
            {"kind": "array", "topic": "vehicle_attitude", "field": "q"},
            {"kind": "xy", "x": {"topic": "x", "field": "y"}, "y": ATTITUDE},
        ]
    }  # fmt: skip
    reply = page.ask("/api/logs/0/document", "POST", body=json.dumps(content).encode())
    assert reply.status == 200
    assert SCRIPT.encode() not in reply.body
    assert b"&lt;script&gt;alert(1)" in reply.body
    assert b'alt="&quot;onload=&quot;: A still picture of what was seen at the start of it."' in reply.body
    assert b'src="data:image/png;base64,iVBORw0KGgoAAAAN"' in reply.body
    assert reply.body.count(b'<p class="note">This cannot be drawn: ') == 2
    assert b"4 values" in reply.body


def test_a_viewer_that_other_machines_see_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "flight.ulg"
    path.write_bytes(short_flight())
    with viewing(path, host="0.0.0.0", allow_hosts=["robot"]) as page:
        assert "other machines" in page.json("notes")["why"]
        assert posted(page, {"put": {"from": 1, "title": "x"}}).status == 400
        assert posted(page, {"file": [{"from": 1, "title": "x"}]}).json["notes"][0]["title"] == "x"
    assert [p.name for p in tmp_path.iterdir()] == ["flight.ulg"]


@pytest.mark.parametrize("path", ["/", "/api/session", "/nothing", "/vendor/uplot/uPlot.min.css"])
def test_content_security_policy_allows_only_own_files(page: Page, path: str) -> None:
    headers = page.ask(path).headers
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert headers["content-security-policy"] == POLICY + "'none'"
    assert "unsafe" not in POLICY
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/vendor/../__init__.py",
        "/static//etc/passwd", "//etc/passwd", "/etc/passwd", "/static/..\\app.py", "/static/%00", "/vendor/",
        "/static/", "/vendor/__init__.py", "/vendor/vendored.json/..", "/static/index.html%00.js",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_files_of_the_page(page: Page, path: str) -> None:
    with socket.create_connection(("127.0.0.1", page.port), timeout=LONG) as connection:
        # Not by a client, which would tidy the path up.
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = connection.makefile("rb").read()
    assert answer.split(b" ")[1] == b"404", answer


def test_hosts_beyond_this_machine_need_a_name(tmp_path: Path) -> None:
    (tmp_path / "x.ulg").write_bytes(short_flight())
    with pytest.raises(UsageError, match="not this machine alone"):
        Viewer([tmp_path / "x.ulg"], host="0.0.0.0")
    with pytest.raises(UsageError, match="token"):
        Viewer([tmp_path / "x.ulg"], token="short")
    with viewing(tmp_path / "x.ulg", host="0.0.0.0", allow_hosts=["robot.lan"]) as page:
        assert page.ask("/api/session", Host="robot.lan").status == 200
        assert page.ask("/api/session", Host="other.lan").status == 403


# ------------------------------------------------------------------------------------- hostile content


@pytest.mark.parametrize("build", [scripted, hostile])
def test_names_and_texts_of_a_log_are_answered_as_data(tmp_path: Path, build: Any) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(build())
    with viewing(path) as page:
        for what in ("channels", "overview", "text", "parameters", "problems", "charts"):
            reply = page.get(what)
            assert reply.status == 200
            assert reply.headers["content-type"] == "application/json"
            json.loads(reply.body, parse_constant=pytest.fail)
        with logreel.open(path) as log:
            assert [line["text"] for line in page.json("text")["lines"]] == [line.text for line in log.text]
            assert [one["name"] for one in page.json("parameters")] == list(log.parameters)
            at = (log["odd"].end or 0) - (log.start or 0)
        assert page.get("message", topic="odd", at=at).status == 200
        assert len(page.arrow("series", topic="odd", field="value")) == 4


def test_topics_and_file_names_of_html_are_found_and_exported_under_safe_names(tmp_path: Path) -> None:
    path = tmp_path / '<img src=x onerror="1">.mcap'
    with logreel.create(path) as w:
        channel = w.add_channel(
            SCRIPT,
            logreel.Schema(
                "x", "jsonschema", '{"type": "object", "properties": {"<b>": {"type": "number"}}}'
            ),
            {"message_encoding": "json"},
        )
        for i in range(3):
            w.write(channel, 10**9 + i, json.dumps({"<b>": i}).encode())
    with viewing(path) as page:
        assert [one["topic"] for one in page.json("channels")] == [SCRIPT]
        assert page.arrow("series", topic=SCRIPT, field="<b>")["v"].to_pylist() == [0, 1, 2]
        reply = page.get("export", kind="csv", topic=SCRIPT)
        assert reply.status == 200
        assert reply.headers["content-disposition"] == 'attachment; filename="img_src_x_onerror_1.csv"'


# ---------------------------------------------------------------------------------- absurd parameters


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("series", {**ATTITUDE, "px": 10**9}),
        ("series", {**ATTITUDE, "px": PIXELS + 1}),
        ("series", {**ATTITUDE, "px": 0}),
        ("series", {**ATTITUDE, "px": "NaN"}),
        ("series", {**ATTITUDE, "px": "1e400"}),
        ("series", {**ATTITUDE, "px": "١٢"}),
        ("series", {**ATTITUDE, "from": "NaN"}),
        ("series", {**ATTITUDE, "from": "inf"}),
        ("series", {**ATTITUDE, "from": 10, "to": 5}),
        ("series", {**ATTITUDE, "to": "9" * 30}),
        ("series", {**ATTITUDE, "px": [1, 2]}),
        ("series", {"field": "q[0]"}),
        ("series", {"topic": "vehicle_attitude", "field": "q"}),
        ("series", {**ATTITUDE, "sql": "1"}),
        ("series", {"topic": "vehicle_attitude", "sql": "1" * (CHARACTERS + 1)}),
        ("series", {"s": ["{}"]}),
        ("series", {"s": ["[" * 3000]}),
        ("series", {"s": [json.dumps(ATTITUDE)] * 100}),
        ("series", {**ATTITUDE, "nonsense": 1}),
        ("overview", {"bins": 10**9}),
        ("spectrogram", {**ATTITUDE, "width": 10**6}),
        ("spectrogram", {**ATTITUDE, "from": 0, "to": 1}),
        ("message", {"topic": "vehicle_attitude"}),
        ("message", {"topic": "vehicle_attitude", "at": "now"}),
        ("message", {"topic": "vehicle_attitude", "at": 0, "step": 10**19}),
        ("array", {"topic": "vehicle_attitude", "field": "nothing[", "at": 0}),
        ("text", {"limit": 10**9}),
        ("text", {"level": "loud"}),
        ("text", {"q": "x" * 1000}),
        ("text", {"after": -1}),
        ("pairs", {"x": "vehicle_attitude.q[0]"}),
        ("export", {"kind": "exe"}),
        ("export", {"kind": "csv"}),
        ("export", {"kind": "csv", "topic": "vehicle_attitude", "from": 10**17}),
    ],
)
def test_absurd_parameters_are_refused_with_a_sentence(page: Page, what: str, given: dict[str, Any]) -> None:
    reply = page.get(what, **given)
    assert reply.status in (400, 404), reply.body
    assert len(reply.error) < 2000


def test_times_far_outside_of_the_log_give_no_points(page: Page) -> None:
    for lo, hi in ((-(2**62), -(2**61)), (2**61, 2**62), (2**63 - 1, 2**63 - 1)):
        got = page.arrow("series", **ATTITUDE, from_=lo, to=hi)
        assert got.schema.metadata[b"count"] == b"0"
    assert page.json("message", topic="vehicle_attitude", at=2**63 - 1)["row"] > 0


# -------------------------------------------------------------------------------------- SQL and work


@pytest.mark.parametrize(
    "expression",
    [
        # Bombs.
        "(SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = timestamp)",
        "(WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t)",
        "length(repeat('x', 3000000000))",
        "list_sum(list_transform(range(1000000000), x -> x))",
        "unnest(range(1000000000))",
        "regexp_matches('aaaaaaaaaaaaaaaaaaaaaaaa', '(a+)+$')::DOUBLE",
        # Files, network and settings.
        "(SELECT content FROM read_text('/etc/passwd'))",
        "(SELECT count(*) FROM '/etc/passwd')",
        "(SELECT count(*) FROM 'http://127.0.0.1:1/x.csv')",
        "getenv('HOME')",
        "1) FROM vehicle_attitude; COPY vehicle_attitude TO '/tmp/logreel-x.csv'; SELECT (1",
        "1) FROM vehicle_attitude; ATTACH '/tmp/logreel-x.db'; SELECT (1",
        "1) FROM vehicle_attitude; SET enable_external_access = true; SELECT (1",
        # What is no single value.
        "1) FROM battery_status WHERE (1 = 1", "1), (2", "*", "COLUMNS(*)", "$1", "1 +", "-- nothing", "(" * 1900,
        "1) ORDER BY (random()", "EXISTS(SELECT 1)",
    ],
)  # fmt: skip
def test_sql_is_only_arithmetic_on_the_fields(page: Page, expression: str) -> None:
    pytest.importorskip("duckdb")
    reply = page.get("series", topic="vehicle_attitude", sql=expression)
    assert reply.status == 400, reply.body
    assert not Path("/tmp/logreel-x.csv").exists()
    assert not Path("/tmp/logreel-x.db").exists()


@pytest.mark.parametrize(
    "expression",
    [
        "CASE WHEN \"q[0]\" > 0.5 AND NOT isnan(q[2]) THEN sqrt(abs(q[1])) ELSE -1 END",
        "q[1] - lag(q[1]) OVER (ORDER BY time_ns)",
        "avg(q[1]) OVER (ORDER BY time_ns ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
        "CAST(time_ns AS DOUBLE) / 1e9", "coalesce(q[1], 0) IN (0, 1)", "q[1] BETWEEN 0 AND 1", "time_ns % 7 & 3",
    ],
)  # fmt: skip
def test_sql_expressions_of_engineers_are_answered(page: Page, expression: str) -> None:
    pytest.importorskip("duckdb")
    assert len(page.arrow("series", topic="vehicle_attitude", sql=expression)) > 10


def test_work_for_a_client_that_has_gone_stops(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless(log: Any, wanted: Any, window: Any, given: Any) -> Any:
        begun.set()
        try:
            while True:
                given.check()
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(series, "_columns", endless)
    with contextlib.closing(page.connect()) as connection:
        path = "/api/logs/0/series?topic=vehicle_attitude&field=q[0]"
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert begun.wait(LONG)
    assert ended.wait(LONG)


def test_several_series_are_not_spoilt_by_a_hostile_one(page: Page) -> None:
    wanted = [ATTITUDE, {"topic": "x" * 500, "field": SCRIPT}, {**ATTITUDE, "function": SCRIPT}]
    good, *bad = streams(page.get("series", s=[json.dumps(one) for one in wanted]).body)
    assert len(good) > 0
    assert all(b"error" in one.schema.metadata for one in bad)
