"""Attachments extracted to files, with any names."""

from __future__ import annotations

import os
import random
import unicodedata
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError
from logreel.log.scan import Attachment
from logreel.outputs.files import extract
from support.harness.cli_runner import Run


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


def thousand_names() -> list[str]:
    """Return 1 000 names that differ little, or not at all for some file systems, or are no names of files."""
    rng = random.Random(23)
    known = [
        "a.txt", "A.txt", "a.TXT", "a .txt", "a\u200b.txt",
        "a_.txt", "a?.txt", "a*.txt", "a|.txt", "a\x00.txt", "a\x01.txt",
        # One letter in two normal forms, in full width, and of other alphabets; letters that change when folded.
        "\u00e9.txt", "e\u0301.txt", "\uff41.txt", "\u0430.txt",
        "\u00df.txt", "ss.txt", "SS.txt", "\u0130.txt", "i\u0307.txt",
        "\u212a.txt", "k.txt", "K.txt", "\ufb01.txt", "fi.txt",
        "\u03c3.txt", "\u03c2.txt", "\u01c4", "\u01c5", "\u01c6",
        ".", "..", "...", "../a.txt", "../../etc/passwd",
        "/etc/passwd", "\\\\host\\share", "C:\\a.txt", "C:a.txt", "a/b.txt",
        "a.b.txt", "a//b.txt", "/a/b.txt", "a/./b.txt", "a/../b.txt",
        "a\\b.txt", "~/a.txt", "~a", "-rf", "--help", ".bashrc",
        "con", "CON.txt", "con.", "nul", "NUL.tar.gz",
        "com1.txt", "COM\u00b9.txt", "lpt9", "manifest.json", "manifest",
        "a.txt.", "a.txt ", "a.txt/", "a.", "a..txt", "a", "",
        " ", "\n", "\r\n", "\t", "a\nb", "\x1b[2J", "\u202etxt.exe",
        "a:stream", "a.txt::$DATA", "%2e%2e%2fa", "$(id)", "`id`", ";id",
        "'", '"', "<a>", "&", "a-0123456789", "\ufeffa.txt",
        "x" * 199, "x" * 200, "x" * 201, "x" * 255,
        "x" * 256, "x" * 5000, "X" * 5000, "x" * 196 + ".txt", "x" * 197 + ".txt",
        "\u00e9" * 100, "\u00e9" * 128, "\U0001f916" * 60, "a." + "b" * 300, "a" * 300 + ".txt", "a/" * 200 + "b",
    ]  # fmt: skip
    found = dict.fromkeys(known)
    pieces = [
        "a",
        "A",
        "/",
        "\\",
        ".",
        "..",
        " ",
        "_",
        "-",
        "~",
        "\x00",
        "\u00e9",
        "e\u0301",
        ":",
        "con",
        ".txt",
        ".TXT",
        "[0]",
    ]
    while len(found) < 1000:
        found["".join(rng.choices(pieces, k=rng.randrange(1, 6)))] = None
    return list(found)


def assert_each_has_a_file(folder: Path, names: list[str], written: dict[str, str], mark: bytes) -> None:
    """Check that names have different, safe files in the folder with their content, and nothing else is there."""
    assert list(written) == names
    files = os.listdir(folder)
    assert sorted(os.path.basename(path) for path in written.values()) == sorted(files)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        folded = {unicodedata.normalize(form, file).casefold() for file in files}
        assert len(folded) == len(names), f"files would be one on a file system that compares by {form}"
    for name, path in written.items():
        assert Path(path).parent == folder
        assert Path(path).read_bytes() == mark + name.encode()
        file = os.path.basename(path)
        assert file.isascii()
        assert file.isprintable()
        assert len(file) <= 200
        assert not file.startswith((".", "-", "~"))
        assert not file.endswith((".", " "))
        assert not set(file) & set('\\/:*?"<>|$`&;')
        assert file.partition(".")[0].lower() not in {"con", "nul", "aux", "prn", "com1", "lpt9", "manifest"}


def test_a_thousand_hostile_names_become_a_thousand_files(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Waiting for the disk thousands of times takes a minute.
    monkeypatch.setattr(os, "fsync", lambda number: None)
    names = thousand_names()
    assert len(names) == 1000
    for mark, force in ((b"old ", False), (b"new ", True)):
        some = [Attachment(n, "text/plain", 0, lambda n=n, m=mark: m + n.encode()) for n in names]
        if force:
            with pytest.raises(LogError, match="exists already"):
                extract(some, tmp_path / "lib")
        assert_each_has_a_file(tmp_path / "lib", names, extract(some, tmp_path / "lib", force), mark)
    assert os.listdir(tmp_path) == ["lib"]
    log = tmp_path / "x.mcap"
    with logreel.create(log) as w:
        for name in names:
            w.attachment(name, name.encode(), "text/plain")
    with logreel.open(log) as opened:
        assert list(opened.attachments) == names
    for more, code in ((["--json"], 0), (["--json"], 1), (["--json", "--force"], 0)):
        done = run("attachments", log, "-o", tmp_path / "cli", *more)
        assert done.code == code, done.err
        if not code:
            written = {one["name"]: one["file"] for one in done.json["attachments"]}
            assert_each_has_a_file(tmp_path / "cli", names, written, b"")
    # The same files as by the library.
    assert sorted(os.listdir(tmp_path / "cli")) == sorted(os.listdir(tmp_path / "lib"))
    assert sorted(os.listdir(tmp_path)) == ["cli", "lib", "x.mcap"]
    one = run("attachments", log, "-o", tmp_path / "one", "--name", "A.txt")
    assert one.code == 0
    assert os.listdir(tmp_path / "one") == [os.path.basename(written["A.txt"])]
