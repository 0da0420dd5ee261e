"""Encrypted bags: written by genuine rosbag with a test key, and built ones, complete and damaged."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import logreel
from logreel.errors import UnsupportedError
from logreel.formats.rosbag import chunks
from support.builders.bag_rows import fast_rows
from support.builders.bag_secret import KEY, USER, encrypt, encrypted, gpg_home
from support.builders.bag_variants import many
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import CHATTER, START, Builder, version_2_0

_SYSTEM = "/usr/bin/python3"
_PROGRAM = "/usr/lib/rosbag/encrypt"
_WRITE = """
import pickle, shutil, sys
import rosbag
from std_msgs.msg import String
path, compression = sys.argv[1:3]
out = rosbag.Bag(path, "w", compression=compression, chunk_threshold=3000)
out.set_encryptor("rosbag/AesCbcEncryptor", "somebody")
from rospy import Time
for k in range(200):
    out.write("/a" if k % 3 else "/b", String("text %d " % k * (k % 7)), Time(1000 + k, k))
out._file.flush()
shutil.copy(path, path + ".active")
out.close()
bag = rosbag.Bag(path)
rows = [(t, d[0], d[2], s.to_nsec(), bytes(d[1])) for t, d, s in bag.read_messages(raw=True)]
sys.stdout.buffer.write(pickle.dumps(rows, 2))
"""


def _require(*what: str) -> None:
    if "cryptography" in what:
        pytest.importorskip("cryptography", reason="cryptography is not installed")
    if "gpg" in what and not (shutil.which("gpg") and shutil.which("gpgconf")):
        pytest.skip("GnuPG is not installed")
    if "rosbag" in what:
        tried = "import rosbag, gnupg; from Cryptodome.Cipher import AES; import std_msgs.msg"
        try:
            found = subprocess.run([_SYSTEM, "-c", tried], capture_output=True).returncode == 0
        except OSError:
            found = False
        if not found:
            pytest.skip("rosbag of ROS is not installed (Debian: python3-rosbag, python3-std-msgs)")


@pytest.fixture(scope="module")
def home() -> Iterator[str]:
    _require("cryptography", "gpg")
    with gpg_home() as path:
        yield path


@pytest.fixture
def at_home(home: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GNUPGHOME", home)
    monkeypatch.delenv(chunks.PASSPHRASE, raising=False)
    return home


@pytest.fixture
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace GnuPG by a function that returns the key."""
    _require("cryptography")
    monkeypatch.setattr(chunks, "_symmetric_key", lambda encrypted: KEY)


def _gpg(home: str, *arguments: str, data: bytes) -> bytes:
    command = ["gpg", "--homedir", home, "--batch", "--quiet", "--trust-model", "always", *arguments]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


# ------------------------------------------------------------------------------------------------ genuine rosbag


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_bags_encrypted_by_genuine_rosbag_are_read(at_home: str, compression: str, tmp_path: Path) -> None:
    _require("rosbag")
    path = tmp_path / "secret.bag"
    done = subprocess.run([_SYSTEM, "-c", _WRITE, str(path), compression], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    rows = pickle.loads(done.stdout)  # noqa: S301
    assert len(rows) == 200
    log = logreel.open(path)
    assert sorted(fast_rows(log)) == sorted(rows)
    assert log.problems == ()
    assert log.metadata["encryptor"] == "rosbag/AesCbcEncryptor"
    assert (log.metadata["gpg_user"], log.metadata["indexed"]) == (USER, True)
    assert log["/a"].to_arrow()["data"][1].as_py() == "text 2 text 2 "
    # Genuine rosbag writes the key when it closes the bag: little of an unclosed bag can be read.
    died = logreel.open(path.with_suffix(".bag.active"))
    assert {row[3:] for row in fast_rows(died)} <= {row[3:] for row in rows}
    assert "unfinished" in {p.code for p in died.problems}
    assert any(p.lost for p in died.problems)


@pytest.mark.parametrize("option", ["--quiet", "--bz2", "--lz4"])
def test_bags_encrypted_by_the_genuine_program_are_read(at_home: str, option: str, tmp_path: Path) -> None:
    """Its encrypted key is binary, that of the Python library is text."""
    _require("cryptography")
    if not Path(_PROGRAM).exists():
        pytest.skip("the program encrypt of ROS is not installed (Debian: python3-rosbag)")
    path, out = tmp_path / "plain.bag", tmp_path / "secret.bag"
    path.write_bytes(version_2_0(many(), Builder(chunk_bytes=4000)))
    command = [_PROGRAM, "--quiet", "--param", USER, "--outbag", str(out), str(path), option]
    subprocess.run(
        command if option != "--quiet" else command[:-1], check=True, capture_output=True, timeout=60
    )
    log = logreel.open(out)
    assert sorted(fast_rows(log)) == sorted(fast_rows(logreel.open(path)))
    assert log.problems == ()
    assert log.metadata["encryptor"] == "rosbag/AesCbcEncryptor"


# ------------------------------------------------------------------------------------------------ keys


@pytest.mark.parametrize("armor", [("--armor",), ()])
def test_key_is_decrypted_by_gnupg(at_home: str, armor: tuple[str, ...]) -> None:
    key = _gpg(at_home, *armor, "--recipient", USER, "--encrypt", data=KEY)
    log = logreel.open(encrypted(many(), encrypted_key=key))
    assert fast_rows(log) == fast_rows(logreel.open(version_2_0(many())))
    assert log.problems == ()


def test_passphrase_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    _require("cryptography", "gpg")
    with gpg_home("open sesame") as home:
        monkeypatch.setenv("GNUPGHOME", home)
        data = encrypted(many(), encrypted_key=_gpg(home, "--recipient", USER, "--encrypt", data=KEY))
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], check=True)
        monkeypatch.delenv(chunks.PASSPHRASE, raising=False)
        with pytest.raises(UnsupportedError, match=chunks.PASSPHRASE):
            logreel.open(data)
        monkeypatch.setenv(chunks.PASSPHRASE, "wrong")
        with pytest.raises(UnsupportedError, match="gpg says"):
            logreel.open(data)
        monkeypatch.setenv(chunks.PASSPHRASE, "open sesame")
        assert logreel.open(data).message_count == len(many())


@pytest.mark.parametrize("key", [KEY + b"more", KEY[:8], bytes(1 << 20)])
def test_key_of_another_size_is_refused(at_home: str, key: bytes) -> None:
    data = encrypted(many(), encrypted_key=_gpg(at_home, "--recipient", USER, "--encrypt", data=key))
    with pytest.raises(UnsupportedError, match="somebody"):
        logreel.open(data)


@pytest.mark.parametrize(
    "key", [b"", b"none", b"-----BEGIN PGP MESSAGE-----\n\nabcd\n", bytes(3000), b"\xff" * 400]
)
def test_bytes_that_are_no_key_are_refused(at_home: str, key: bytes) -> None:
    with pytest.raises(UnsupportedError, match="rosbag/AesCbcEncryptor, for GnuPG user 'somebody'"):
        logreel.open(encrypted(many(), encrypted_key=key))


def test_missing_gnupg_or_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    _require("cryptography")
    data = encrypted(many())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnsupportedError, match="the program gpg"):
        logreel.open(data)
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.ciphers", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'logreel\[encrypted\]'"):
        logreel.open(data)


def test_another_encryptor_is_refused_by_name() -> None:
    data = version_2_0(many(), Builder(extra=(("encryptor", b"my/Own"), ("gpg_user", b"x"))))
    with pytest.raises(UnsupportedError, match=r"my/Own.*only rosbag/AesCbcEncryptor is known"):
        logreel.open(data)


# ------------------------------------------------------------------------------------------------ built bags


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
@pytest.mark.parametrize("finished", [True, False])
def test_encrypted_chunks_of_every_compression_are_read(
    with_key: None, compression: str, finished: bool
) -> None:
    log = logreel.open(encrypted(many(), compression, chunk_bytes=4000, finished=finished))
    assert fast_rows(log) == fast_rows(logreel.open(version_2_0(many())))
    assert [p.code for p in log.problems] == ([] if finished else ["index"])


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_encrypted_bag_without_index_has_the_same_messages(with_key: None, compression: str) -> None:
    data = bytearray(encrypted(many(), compression, chunk_bytes=4000))
    whole = fast_rows(logreel.open(bytes(data)))
    at = data.index(b"index_pos=") + 10
    data[at : at + 8] = bytes(8)
    log = logreel.open(bytes(data))
    assert fast_rows(log) == whole
    assert [p.code for p in log.problems] == ["index"]


def test_whole_blocks_of_a_cut_encrypted_chunk_are_read(with_key: None) -> None:
    data = encrypted(many(), finished=False)
    whole = fast_rows(logreel.open(data))
    for share in (0.9, 0.5, 0.3):
        log = logreel.open(data[: int(len(data) * share)])
        rows = fast_rows(log)
        assert rows == whole[: len(rows)]
        assert len(rows) > (share - 0.15) * len(whole)
        assert any(p.code == "chunk" and p.lost for p in log.problems)


def test_one_wrong_bit_in_an_encrypted_chunk_loses_few_messages_and_is_reported(with_key: None) -> None:
    """A damaged block changes about 17 bytes; changes inside a payload cannot be detected."""
    data = encrypted([(CHATTER, START + k, bytes(8)) for k in range(200)], finished=False)
    whole = [row[3:] for row in fast_rows(logreel.open(data))]
    first = data.index(b"op=\x05") + 100
    for at in range(first, len(data) - 40, 397):
        broken = bytearray(data)
        broken[at] ^= 16
        log = logreel.open(bytes(broken))
        assert len(set(whole) - {row[3:] for row in fast_rows(log)}) <= 3
        assert log.problems
    # Damage at the end is detected by the padding.
    broken = bytearray(data)
    broken[data.index(b"conn=", first) - 9] ^= 1
    assert any(p.code == "chunk" and p.lost for p in logreel.open(bytes(broken)).problems)


def test_unfinished_last_chunk_is_not_encrypted(with_key: None) -> None:
    """Chunks are encrypted when they are finished."""
    fields = (("encryptor", b"rosbag/AesCbcEncryptor"), ("gpg_user", b"x"), ("encrypted_key", b"x"))
    out = Builder(extra=fields, pack=encrypt, finished=False)
    conn = out.connection(CHATTER)
    for k in range(3):
        out.message(conn, START + k, bytes(40))
    out.chunk(finished=False, pack=bytes)
    out.message(conn, START + 4, bytes(44), connect=False)
    log = logreel.open(out.bytes())
    assert [row[3] - START for row in fast_rows(log)] == [0, 1, 2, 4]
    assert sorted(p.code for p in log.problems) == ["index", "unfinished"]


def test_wrong_padding_is_reported(with_key: None) -> None:
    cipher = chunks.Cipher(KEY, USER)
    for n in range(40):
        data, wrong = cipher.decrypt(encrypt(bytes(n)))
        assert (data.tobytes(), wrong) == (bytes(n), "")
        assert cipher.decrypt(encrypt(bytes(n))[:-1])[1]
    for n in range(16):
        assert cipher.decrypt(bytes(n))[1]
        assert not len(cipher.decrypt(bytes(n))[0])
    assert cipher.decrypt(encrypt(b"x")[:16])[1]


def test_every_cut_of_an_encrypted_bag_is_read(with_key: None) -> None:
    data = encrypted(many(6), chunk_bytes=400, padded=600)
    whole = fast_rows(logreel.open(data))
    assert data.count(b"op=\x05") > 2
    for cut in range(600, len(data), 7):
        rows = fast_rows(log := logreel.open(data[:cut]))
        assert rows == whole[: len(rows)]
        assert log.problems, cut


def test_encrypted_bag_is_not_continued_but_its_copy_is(with_key: None, tmp_path: Path) -> None:
    path, copy = tmp_path / "a.bag", tmp_path / "copy.bag"
    path.write_bytes(encrypted(many(), "lz4", chunk_bytes=4000))
    data = path.read_bytes()
    with pytest.raises(logreel.UnsupportedError, match=r"is encrypted: .* copy it by logreel\.slice"):
        logreel.create(path, mode="a")
    assert path.read_bytes() == data
    assert [one.name for one in tmp_path.iterdir()] == ["a.bag"]
    logreel.slice(logreel.open(path, decrypt=True), copy)
    old = len(list(logreel.open(copy).messages()))
    with logreel.create(copy, mode="a") as w:
        w.write(
            w.add_channel("/more", logreel.Schema("std_msgs/String", "ros1msg", "")), 10**18, {"data": "x"}
        )
    assert logreel.open(copy).message_count == old + 1


def test_a_part_of_an_encrypted_bag_can_be_asked_about_as_the_whole(
    with_key: None, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "secret.bag"
    path.write_bytes(encrypted(many()))
    whole = run("info", path, "--json").json
    # A view writes nothing, so that it needs no permission.
    assert run("info", path, "-S", "0", "--json").json["messages"] == whole["messages"]
    assert run("info", path, "-S", "0", "--decrypt", "--json").json["messages"] == whole["messages"]
    refused = run("slice", path, "-S", "0", "-o", tmp_path / "part.bag")
    assert refused.code == 2
    assert "pass --decrypt to allow that" in refused.err
    assert [one.name for one in tmp_path.iterdir()] == ["secret.bag"]
