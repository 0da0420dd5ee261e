"""Access control of the service, and error responses."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logreel.errors import LogError, UnknownFormatError, UsageError
from logreel.outputs.http.server import is_origin
from logreel.outputs.serve import Service
from support.harness.serving import TOKEN, Client, running
from support.samples.ulog.builder import tiny

PAGE = "https://tool.example.org"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "tiny.ulg").write_bytes(tiny())
    with running(folder, allow_hosts=["robot.lan"], allow_origins=[PAGE + "/"]) as client:
        yield client


# ------------------------------------------------------------------------------------------------- tokens


def test_the_token_is_accepted_in_a_header_or_the_query(client: Client) -> None:
    assert client.ask("/logs").status == 200
    assert client.ask(f"/logs?token={TOKEN}", token=None).status == 200
    assert client.ask("/logs", token=None, Authorization=f"bearer {TOKEN}").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/logs",
        "/logs/x",
        "/logs/x/slice",
        "/logs/x/index",
        "/logs/x/text",
        "/index",
        "/query",
        "/slice",
        "/text",
        "/openapi.json",
        "/nothing",
    ],
)
def test_requests_without_the_right_token_give_401(client: Client, path: str) -> None:
    for token, query in (
        (None, ""),
        ("wrong", ""),
        (TOKEN[:-1], ""),
        (None, "?token=wrong"),
        (None, "?token="),
    ):
        reply = client.ask(path + query, token=token)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert "token is missing or wrong" in reply.error
    assert client.ask(path, token=None, Authorization=f"Basic {TOKEN}").status == 401
    # A wrong header is not made good by the address.
    assert client.ask(f"{path}?token={TOKEN}", token="wrong").status == 401
    assert client.ask(path, token="\xe9" * 20).status == 401


def test_a_random_token_is_generated(tmp_path: Path) -> None:
    with running(tmp_path, token=None) as client:
        token = client.service.token
        assert len(token) >= 32
        assert client.service.address == f"{client.service.url}?token={token}"
        assert client.ask("/logs", token=token).status == 200
        assert client.ask("/logs").status == 401


# ------------------------------------------------------------------------------- names, pages and methods


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:99", "127.0.0.1:80", "[::1]:8000", "robot.lan", "robot.lan."]
)
def test_host_names_of_the_service_are_accepted(client: Client, host: str) -> None:
    assert client.ask("/logs", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "10.0.0.1",
        "",
        "a b",
        "localhost@x",
    ],
)
def test_other_host_names_give_403(client: Client, host: str) -> None:
    reply = client.ask("/logs", Host=host)
    assert reply.status == 403
    assert "Host" in reply.error


def test_pages_of_other_origins_give_403(client: Client) -> None:
    own = f"http://localhost:{client.port}"
    assert client.ask("/logs", Host=own[7:], Origin=own).status == 200
    for origin in (
        "https://evil.example",
        "null",
        f"http://localhost:{client.port + 1}",
        own + ".evil.example",
    ):
        reply = client.ask("/logs", Host=own[7:], Origin=origin)
        assert reply.status == 403
        assert "access-control-allow-origin" not in reply.headers


def test_pages_of_an_allowed_origin_get_cors_headers(client: Client) -> None:
    reply = client.ask("/logs", Origin=PAGE)
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == PAGE
    asked = client.ask(
        "/logs",
        "OPTIONS",
        token=None,
        Origin=PAGE,
        Access_Control_Request_Method="GET",
        Access_Control_Request_Headers="authorization",
    )
    assert asked.status == 200
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert asked.headers["access-control-allow-methods"] == "GET, HEAD"
    assert "Authorization" in asked.headers["access-control-allow-headers"].split(", ")
    # A preflight request is subject to the same names and origins.
    for wrong in ({"Origin": "https://evil.example"}, {"Origin": PAGE, "Host": "evil.example"}):
        refused = client.ask("/logs", "OPTIONS", token=None, Access_Control_Request_Method="GET", **wrong)
        assert refused.status == 403
        assert "access-control-allow-origin" not in refused.headers
    assert "access-control-allow-origin" not in client.ask("/logs").headers
    # Also an answer with what is wrong can be read by that page.
    assert client.ask("/logs", token=None, Origin=PAGE).headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize(
    ("name", "values", "status"),
    [
        ("Host", ("localhost", "evil.example"), (400, 403)),
        ("Origin", (PAGE, PAGE), (403,)),
        ("Authorization", (f"Bearer {TOKEN}", "Bearer wrong"), (401,)),
    ],
)
def test_repeated_headers_are_refused(
    client: Client, name: str, values: tuple[str, str], status: tuple[int, ...]
) -> None:
    with contextlib.closing(client.connect()) as connection:
        connection.putrequest("GET", "/logs", skip_host=name == "Host")
        if name != "Authorization":
            connection.putheader("Authorization", f"Bearer {TOKEN}")
        for value in values:
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.getresponse().status in status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_than_get_and_head_give_405(client: Client, method: str) -> None:
    reply = client.ask("/logs", method)
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, HEAD"


def test_every_response_has_security_headers(client: Client) -> None:
    for path in ("/", client.path("tiny.ulg"), "/nothing"):
        headers = client.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_head_has_the_headers_of_get_without_a_body(client: Client) -> None:
    for path in ("/logs", client.path("tiny.ulg")):
        reply = client.ask(path, "HEAD")
        assert (reply.status, reply.body) == (200, b"")
        assert reply.headers["content-type"] == client.ask(path).headers["content-type"]
    assert client.ask("/logs/x/slice", "HEAD").status == 404


# --------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("wish", "status", "text"),
    [
        ({"start": "yesterday"}, 400, "cannot read the time 'yesterday'"),
        ({"start": "+2s", "end": "+1s"}, 400, "lies before the start"),
        ({"start": "2024-01-01T00:00:00Z"}, 400, "does not tell how its clock relates to UTC"),
        ({"start": ["+1s", "+2s"]}, 400, "given twice"),
        ({"end": ""}, 400, "the parameter 'end' is empty"),
        ({"topics": "pair"}, 400, "no parameter 'topics'; there are: from_nsec, from_sec,"),
        ({"topic": "pear"}, 404, "no channel 'pear'; nearest: pair"),
        ({"topic": "re:("}, 400, ""),
        ({"exclude": ["*", "~*"]}, 400, "no channel is left"),
        ({"format": "wav"}, 400, "no format 'wav'; there are: arrow, bag"),
        ({"format": "jpg"}, 400, "no format 'jpg'"),
        ({"format": "../../x"}, 400, "no format '../../x'"),
        ({"format": "kml"}, 422, "no channel that holds latitude and longitude"),
        ({"format": "csv", "exclude": ["*", "~*"]}, 400, "no channel is left"),
    ],
)
def test_wrong_parameters_give_an_error_in_json(
    client: Client, wish: dict[str, str], status: int, text: str
) -> None:
    reply = client.slice("tiny.ulg", **wish)
    assert reply.status == status, reply
    assert text in reply.error
    assert set(reply.json) == {"error"}
    assert reply.headers["content-type"] == "application/json"


def test_the_list_has_pages(tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}.ulg").write_bytes(tiny())
    with running(tmp_path) as client:
        names, after = list[str](), ""
        while True:
            page = client.ask(f"/logs?limit=2{after}").json
            names += [one["name"] for one in page["logs"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert names == [f"{n}.ulg" for n in range(5)]
        for query in ("limit=0", "limit=-1", "limit=1001", "limit=x", "after=x", "from=1"):
            assert client.ask(f"/logs?{query}").status == 400


def test_wrong_options_of_a_service_raise_errors(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    for options, text in (
        ({"token": "short"}, "16 to 200"),
        ({"allow_origins": ["tool.example"]}, "no origin"),
    ):
        with pytest.raises(UsageError, match=text):
            Service([tmp_path], **options)  # type: ignore[arg-type]
    with pytest.raises(UnknownFormatError):
        Service([tmp_path / "note.txt"])
    with pytest.raises(FileNotFoundError):
        Service([tmp_path / "missing"])
    with running(tmp_path) as client, pytest.raises(LogError, match=f"port {client.port}: "):
        Service([tmp_path], port=client.port)


def test_ipv6_addresses_have_brackets(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(running(tmp_path, host="::1"))
        except LogError:
            pytest.skip("this machine has no IPv6")
        assert client.service.url == f"http://[::1]:{client.port}/"
        assert client.ask("/logs").status == 200


def test_is_origin_accepts_only_origins() -> None:
    assert is_origin("https://a.example:8443")
    assert is_origin("http://localhost:3000/")
    assert not any(map(is_origin, ("*", "a.example", "https://a.example/page", "file:///x", "https://")))


# -------------------------------------------------------------------------------------------------- files


def test_only_files_below_the_folder_are_served(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    (inside / "sub").mkdir(parents=True)
    for path in ("out.ulg", "in/a.ulg", "in/sub/b.ulg", "in/.hidden.ulg"):
        (tmp_path / path).write_bytes(tiny())
    (inside / "link.ulg").symlink_to(tmp_path / "out.ulg")
    (inside / "way").symlink_to(tmp_path)
    (inside / "same.ulg").symlink_to(inside / "a.ulg")
    (inside / "note.txt").write_text("no log")
    (inside / "empty.ulg").write_bytes(b"")
    os.mkfifo(inside / "pipe.ulg")
    with running(inside) as client:
        ids = client.ids()
        assert set(ids) == {"a.ulg", "sub/b.ulg"}
        assert all(one.isalnum() and len(one) == 20 for one in ids.values())
        for path in ("..", "../out.ulg", "..%2fout.ulg", "%2e%2e/out.ulg", "a.ulg", "%00", "x" * 3000):
            assert client.ask(f"/logs/{path}").status == 404
            assert client.ask(f"/logs/{path}/slice").status == 404
        # A file that becomes a way out after it was listed.
        (inside / "a.ulg").unlink()
        (inside / "a.ulg").symlink_to(tmp_path / "out.ulg")
        assert client.ask(f"/logs/{ids['a.ulg']}").status == 404
        assert client.ask(f"/logs/{ids['a.ulg']}/slice").status == 404


def test_only_given_files_are_served(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(tiny())
    (tmp_path / "b.ulg").write_bytes(tiny())
    (tmp_path / "c.ulg").symlink_to(tmp_path / "b.ulg")
    with running(tmp_path / "a.ulg", tmp_path / "c.ulg") as client:
        assert set(client.ids()) == {"a.ulg", "c.ulg"}
        assert client.slice("c.ulg").body == client.slice("a.ulg").body == tiny()


def test_responses_do_not_contain_local_paths(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(tiny())
    with running(tmp_path) as client:
        log = client.ids()["a.ulg"]
        for path in (
            "/",
            "/logs",
            f"/logs/{log}",
            f"/logs/{log}/slice?topic=x",
            f"/logs/{log}/slice?format=kml",
        ):
            assert str(tmp_path) not in client.ask(path).body.decode()


def test_the_list_follows_changes_of_the_folder(tmp_path: Path) -> None:
    from support.builders.sample_logs import incompatible
    from support.samples.rosbag.builder import drive

    (tmp_path / "a.log").write_bytes(tiny())
    with running(tmp_path) as client:
        before = client.ask("/logs").json["logs"]
        (tmp_path / "b.ulg").write_bytes(incompatible())
        (tmp_path / "new.log").write_bytes(drive())
        os.replace(tmp_path / "new.log", tmp_path / "a.log")
        a, b = client.ask("/logs").json["logs"]
        assert (before[0]["format"], a["format"]) == ("ulog", "rosbag")
        assert before[0]["id"] == a["id"]
        assert a["messages"] > before[0]["messages"]
        assert client.ask(f"/logs/{a['id']}").json["format"] == "rosbag"
        assert "requires a feature that is not known" in b["error"]
        assert b["messages"] is None
        assert client.ask(f"/logs/{b['id']}/slice").status == 422
        (tmp_path / "a.log").unlink()
        gone = client.ask(f"/logs/{a['id']}/slice")
        assert gone.status == 404
        assert b["id"] in gone.error
        (tmp_path / "b.ulg").unlink()
        assert client.ask("/logs").json == {"logs": [], "next": None}


def test_the_request_log_does_not_contain_the_token(tmp_path: Path) -> None:
    with running(tmp_path, log=True) as client:
        client.ask(f"/logs?token={TOKEN}", token=None)
        client.ask("/logs", token="wrong")
    assert [line.split()[1:4] for line in client.log_lines] == [
        ["GET", "/logs", "200"],
        ["GET", "/logs", "401"],
    ]
    assert not any(TOKEN in line for line in client.log_lines)
