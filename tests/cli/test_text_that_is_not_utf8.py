"""Text that is not UTF-8: shown with replacement characters, and kept byte for byte where nothing is decoded."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import logreel
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import CHATTER, START, Builder, version_2_0

TEXT = b"a\xff\xfeb"
PAYLOAD = struct.pack("<I", len(TEXT)) + TEXT


def test_text_that_is_not_utf8_survives_copies_and_not_json(tmp_path: Path, run: Run) -> None:
    path, lines = tmp_path / "a.bag", tmp_path / "a.ndjson"
    path.write_bytes(version_2_0([(CHATTER, START, PAYLOAD)], Builder()))
    shown = run("cat", path, "--format", "ndjson")
    assert json.loads(shown.out)["data"] == {"data": "a\ufffd\ufffdb"}
    lines.write_text(shown.out)
    assert run("record", tmp_path / "b.bag", "--from", lines).code == 0
    (message,) = logreel.open(tmp_path / "b.bag").messages()
    assert message.decode() == {"data": "a\ufffd\ufffdb"}
    for copy in ("c.bag", "c.mcap"):
        assert run("convert", path, tmp_path / copy).code == 0
        (message,) = logreel.open(tmp_path / copy).messages()
        assert bytes(message.data) == PAYLOAD
