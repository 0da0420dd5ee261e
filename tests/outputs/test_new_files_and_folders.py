"""New files and folders appear complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logreel.errors import LogError
from logreel.outputs.files import MANIFEST, MANIFEST_KEY, new_file, new_folder


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def ours(folder: Path) -> Path:
    folder.mkdir()
    (folder / MANIFEST).write_text(f'{{"{MANIFEST_KEY}": 1}}')
    (folder / "old").touch()
    return folder


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    with new_file(tmp_path / "x") as out:
        out.write(b"abc")
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").read_bytes() == b"abc"
    assert left(tmp_path) == ["x"]
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o666 & ~mask


def fail_in_file(path: Path, error: type[BaseException]) -> None:
    with new_file(path) as out:
        out.write(b"abc")
        raise error


def fail_in_folder(path: Path, error: type[BaseException]) -> None:
    with new_folder(path) as folder:
        (folder / "f").touch()
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_no_file(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        fail_in_file(tmp_path / "x", error)
    with pytest.raises(error):
        fail_in_folder(tmp_path / "d", error)
    assert left(tmp_path) == []


def test_a_failure_keeps_the_existing_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    folder = ours(tmp_path / "d")
    with pytest.raises(ValueError, match="no"), new_file(tmp_path / "x", force=True):
        raise ValueError("no")
    with pytest.raises(ValueError, match="no"), new_folder(folder, force=True):
        raise ValueError("no")
    assert (tmp_path / "x").read_text() == "old"
    assert left(folder) == [MANIFEST, "old"]
    assert left(tmp_path) == ["d", "x"]


def test_existing_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(LogError, match="exists already"), new_file(tmp_path / "x"):
        pass
    with new_file(tmp_path / "x", force=True) as out:
        out.write(b"new")
    assert (tmp_path / "x").read_text() == "new"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="exists already"), new_file(tmp_path / "x"):
        (tmp_path / "x").write_text("theirs")
    with pytest.raises(LogError, match="exists already"), new_folder(tmp_path / "d"):
        ours(tmp_path / "d")
    assert (tmp_path / "x").read_text() == "theirs"
    assert left(tmp_path) == ["d", "x"]


def test_only_our_own_folders_are_replaced(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.txt").touch()
    (theirs / MANIFEST).write_text('{"other": 1}')
    with pytest.raises(LogError, match="did not write"), new_folder(theirs, force=True):
        pass
    folder = ours(tmp_path / "ours")
    with pytest.raises(LogError, match="exists already"), new_folder(folder):
        pass
    with (
        pytest.raises(LogError, match="holds the log itself"),
        new_folder(folder, True, [str(folder / "old")]),
    ):
        pass
    with new_folder(folder, force=True) as new:
        (new / "new").touch()
    assert left(folder) == ["new"]
    assert left(tmp_path) == ["ours", "theirs"]


def test_an_empty_folder_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with new_folder(tmp_path / "d") as folder:
        (folder / "f").touch()
    assert left(tmp_path / "d") == ["f"]


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "nowhere").symlink_to("none")
    for name in ("link", "nowhere"):
        with pytest.raises(LogError, match="exists already"), new_file(tmp_path / name):
            pass
        assert (tmp_path / name).is_symlink()
        with new_file(tmp_path / name, force=True) as out:
            out.write(b"new")
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_text() == "new"
    assert (tmp_path / "real").read_text() == "old"
    assert not (tmp_path / "none").exists()


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with new_folder(tmp_path / "link") as folder:
        (folder / "f").touch()
    assert (tmp_path / "link").is_symlink()
    assert left(tmp_path / "real") == ["f"]


def test_paths_that_cannot_be_written_raise_errors(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no such folder"), new_file(tmp_path / "no" / "x"):
        pass
    with pytest.raises(LogError, match="is a folder"), new_file(tmp_path, force=True):
        pass
    (tmp_path / "f").touch()
    with pytest.raises(LogError, match="is a file"), new_folder(tmp_path / "f", force=True):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LogError, match="not a regular file"), new_file(tmp_path / "pipe", force=True):
        pass
