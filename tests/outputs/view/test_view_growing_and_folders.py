"""Logs that grow while they are viewed, folders, and logs that cannot be opened."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from logreel.outputs.view import Viewer
from support.builders.sample_logs import short_flight
from support.harness.serving import TOKEN, eventually
from support.harness.viewing import Page, parsed_events, viewing


def listened(page: Page, happens: Any, until: str) -> list[Any]:
    """Return the events up to one of kind *until*; *happens* is called when the stream has begun."""
    found: list[Any] = []
    with contextlib.closing(page.connect()) as connection:
        connection.request("GET", "/api/events", headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.readline() == b": hello\n"
        happens()
        while not any(until in one for one in found):
            found += parsed_events(answer.readline())
    return found


def measured(table: Any) -> int:
    """Return the rows of a series without those that break its line in gaps."""
    return int(np.isfinite(table["v"].to_numpy()).sum())


def test_growth_of_a_followed_log_is_told_and_drawn(tmp_path: Path) -> None:
    data = short_flight()
    path = tmp_path / "flight.ulg"
    path.write_bytes(data[: len(data) // 2])

    def grow() -> None:
        with open(path, "ab") as file:
            file.write(data[len(data) // 2 :])

    with viewing(path, follow=True) as page:
        before = page.json("session", None)["logs"][0]["messages"]
        some = page.arrow("series", topic="vehicle_attitude", field="q[0]")
        (event,) = [one for one in listened(page, grow, "grown") if "grown" in one]
        with logreel.open(data) as log:
            assert before < event["grown"]["messages"] == log.message_count
            assert eventually(
                lambda: (
                    measured(page.arrow("series", topic="vehicle_attitude", field="q[0]"))
                    == len(log["vehicle_attitude"])
                    > len(some)
                )
            )
            assert page.json("session", None)["logs"][0]["duration"] == log.duration


def test_a_followed_file_may_come_later(tmp_path: Path) -> None:
    path = tmp_path / "flight.ulg"
    with viewing(path, follow=True) as page:
        assert page.json("session", None)["logs"][0]["opened"] is False
        assert page.json("overview")["complete"] is False
        path.write_bytes(short_flight())
        assert eventually(lambda: page.json("session", None)["logs"][0]["opened"])
        assert page.json("overview")["complete"] is True


def test_logs_of_a_folder_are_several_logs(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(short_flight())
    (tmp_path / "b.bag").write_bytes(b"#ROSBAG V2.0\n")
    (tmp_path / "notes.txt").write_text("none\n")
    with viewing(tmp_path) as page:
        assert eventually(lambda: all(one["opened"] for one in page.json("session", None)["logs"]))
        logs = {one["name"]: one for one in page.json("session", None)["logs"]}
        assert set(logs) == {"a.ulg", "b.bag"}
        assert logs["a.ulg"]["error"] is None


def test_a_file_that_is_no_log_says_so_and_others_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(short_flight())
    (tmp_path / "b.ulg").write_text("no log")
    with viewing(tmp_path / "a.ulg", tmp_path / "b.ulg") as page:
        good, bad = page.json("session", None)["logs"]
        assert good["error"] is None
        assert "format" in bad["error"]
        assert page.get("channels", log="1").status == 422
        assert page.get("channels", log="2").status == 404


def test_missing_files_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Viewer([tmp_path / "none.ulg"])
    with pytest.raises(UsageError, match="no log"):
        Viewer([tmp_path])
    with pytest.raises(UsageError, match="needs a log"):
        Viewer([])


def test_log_view_is_a_frame_for_notebooks_with_the_log_itself(tmp_path: Path) -> None:
    with logreel.open(short_flight()) as log, log.view(token=TOKEN) as viewer:
        page = Page(viewer, [])
        assert page.json("session", None)["logs"][0]["messages"] == log.message_count
        assert viewer._repr_html_().startswith(f'<iframe src="http://127.0.0.1:{page.port}/#token={TOKEN}"')
        policy = page.ask("/api/session").headers["content-security-policy"]
        assert policy.endswith("frame-ancestors http://localhost:* http://127.0.0.1:*")
    with pytest.raises(ConnectionRefusedError):
        page.ask("/api/session")
