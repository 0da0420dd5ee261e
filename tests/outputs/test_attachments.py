"""Attachments extracted to files, with any names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logreel.errors import LogError
from logreel.log.scan import Attachment
from logreel.outputs.attachments import extract


def attachment(name: str) -> Attachment:
    return Attachment(name, "text/plain", len(name), lambda: name.encode("utf-8", "surrogatepass"))


def test_hostile_names_stay_in_the_folder(tmp_path: Path) -> None:
    names = [
        "../../evil.txt",
        "/etc/passwd",
        "a/b.txt",
        "A/B.TXT",
        ".bashrc",
        "con.txt",
        "x\x1b.bin",
        "",
        "x" * 400,
    ]
    written = extract(map(attachment, names), tmp_path / "deep" / "out")
    assert list(written) == names
    assert os.listdir(tmp_path) == ["deep"]
    assert os.listdir(tmp_path / "deep") == ["out"]
    assert len(os.listdir(tmp_path / "deep" / "out")) == len(names)
    for name, path in written.items():
        assert Path(path).parent == tmp_path / "deep" / "out"
        assert Path(path).read_bytes() == name.encode()


def test_a_single_attachment_gets_the_same_name_as_among_all(tmp_path: Path) -> None:
    names = ["a/b.txt", "a.b.txt"]
    every = extract(map(attachment, names), tmp_path / "all")
    one = extract([attachment(names[1])], tmp_path / "one", all_names=names)
    assert os.path.basename(one[names[1]]) == os.path.basename(every[names[1]])


def test_existing_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    extract([attachment("a.txt")], tmp_path)
    with pytest.raises(LogError, match="exists already"):
        extract([attachment("a.txt")], tmp_path)
    extract([attachment("a.txt")], tmp_path, force=True)
