"""The page that reads logs in the browser: it says what logreel says, and its files ask nothing of other hosts."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import logreel
from support.builders.contents import SAMPLES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "site/drop"


def module(path: Path) -> ModuleType:
    """Import a file that is in no package, under a name that no other test imports."""
    name = f"drop_{path.stem}" if path.parent == PAGE else path.stem
    spec = spec_from_file_location(name, path)
    loaded = module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


logs = module(PAGE / "logs.py")
build_pyodide = module(ROOT / "tools/build_pyodide.py")
build_drop = module(ROOT / "tools/build_drop.py")


def asked(desk: Any, what: str) -> Any:
    return json.loads(desk.ask(what))["answer"]


def as_json(data: Any) -> Any:
    return json.loads(json.dumps(data, default=str))


# ------------------------------------------------------------------------------------------ the Python of the page


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_answers_are_those_of_logreel(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    desk = logs.Desk(str(tmp_path / "scratch"))
    with logreel.open(path) as log:
        assert json.loads(desk.open(str(path))) == {"answer": {"format": log.format}}
        told = asked(desk, "info")
        assert told["messages"] == log.message_count
        assert [channel["topic"] for channel in told["channels"]] == list(log.channels)
        assert asked(desk, "summary") == as_json(logreel.summary(log).as_dict())
        assert asked(desk, "health") == as_json(logreel.health(log).as_dict())
        page = asked(desk, "report")
        assert page["name"] == "log.html"
        assert page["html"].startswith("<!doctype html>")
        recovered = asked(desk, "recover")
        assert (recovered["name"], recovered["lost"]) == (f"log_recovered{suffix}", [])
        assert logreel.open(recovered["path"]).message_count == log.message_count


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    desk = logs.Desk(str(tmp_path))
    (tmp_path / "x.ulg").write_bytes(b"no log at all" * 100)
    for path in ("x.ulg", "nothing.ulg"):
        (error,) = json.loads(desk.open(str(tmp_path / path))).values()
        assert path.partition(".")[0] in error or "file" in error
        assert "Traceback" not in error
    assert json.loads(desk.ask("info")) == {"error": "there is no open log"}
    desk.warm_up()
    assert json.loads(desk.ask("open")) == {"error": "there is no open log"}


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (MemoryError(), "needs more memory than a browser gives"),
        (
            ModuleNotFoundError("no", name="zstandard"),
            "packed by zstd cannot be read: this page was built without",
        ),
        (ModuleNotFoundError("no", name="lz4.frame"), "packed by LZ4 cannot be read"),
        (ModuleNotFoundError("no", name="google"), "messages of protobuf cannot be read"),
        (ModuleNotFoundError("no", name="pyarrow"), "this needs pyarrow"),
        (OSError(5, "Input/output error"), "the file cannot be read: Input/output error"),
    ],
)
def test_errors_that_a_browser_brings_have_sentences(raised: Exception, sentence: str) -> None:
    def fails() -> None:
        raise raised

    assert sentence in json.loads(logs.answer(fails))["error"]


def test_a_lost_library_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert logs.lacking() == []
    monkeypatch.setitem(logs.CODECS, "no_such_library.at_all", "logs of the future")
    assert logs.lacking() == [
        "logs of the future cannot be read: this page was built without no_such_library.at_all"
    ]


def test_the_worker_is_warm_after_a_log_without_messages(tmp_path: Path) -> None:
    desk = logs.Desk(str(tmp_path / "scratch"))
    desk.warm_up()
    desk.open(str(tmp_path / "scratch/empty.ulg"))
    for what in logs.VERBS:
        assert "answer" in json.loads(desk.ask(what)), what


# ------------------------------------------------------------------------------------------ the files of the page


class Named(HTMLParser):
    """Collects the files that a page names, and its policy."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []
        self.policy = ""
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.files += [given[name] for name in ("src", "href") if name in given]
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]


def test_the_page_asks_for_nothing_but_its_own_files() -> None:
    named = Named()
    named.feed((PAGE / "index.html").read_text("utf-8"))
    assert named.files
    assert [name for name in named.files if not (PAGE / name).is_file()] == []
    assert named.inline == []
    rules = dict(rule.strip().split(" ", 1) for rule in named.policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert {word for rule in rules.values() for word in rule.split()} == {
        "'none'",
        "'self'",
        "'wasm-unsafe-eval'",
    }
    for path in PAGE.iterdir():
        if path.suffix in {".js", ".css", ".html", ".py"}:
            text = path.read_text("utf-8")
            assert not re.search(r"https?:|//cdn|@import|url\(|innerHTML|eval\(|document\.write", text), (
                path.name
            )


# ------------------------------------------------------------------------------------------------ what builds it


def a_distribution(folder: Path, packages: dict[str, list[str]], files: tuple[str, ...] = ()) -> Path:
    folder.mkdir()
    lock = {
        "info": {"python": "3.12.7", "abi_version": "2024_0"},
        "packages": {
            name: {"file_name": f"{name}.whl", "depends": needs} for name, needs in packages.items()
        },
    }
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    for name in files:
        (folder / name).write_bytes(name.encode())
    return folder


def test_headers_have_the_sizes_of_the_other_machine() -> None:
    text = build_pyodide.pyconfig(
        {"SIZEOF_LONG": 4, "HAVE_MMAP": 0, "HAVE_STDINT_H": 1, "CC": "cc", "prefix": 3, "PY_SSIZE_T_CLEAN": 1}
    )
    assert [line for line in text.splitlines() if line.startswith("#define")] == [
        "#define Py_PYCONFIG_H",
        "#define HAVE_STDINT_H 1",
        "#define PY_SSIZE_T_CLEAN 1",
        "#define SIZEOF_LONG 4",
    ]


def test_only_packages_that_are_complete_are_taken(tmp_path: Path) -> None:
    folder = a_distribution(
        tmp_path / "p", {"numpy": ["blas"], "blas": ["numpy"], "lz4": ["lost"], "lost": []},
        ("numpy.whl", "blas.whl", "lz4.whl"),
    )  # fmt: skip
    read = build_pyodide.Distribution.of(folder)
    assert (read.platform, read.closure("numpy")) == ("pyodide_2024_0_wasm32", ["numpy", "blas"])
    assert (read.closure("lz4"), read.closure("none")) == ([], [])


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_drop.main([str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "is not the folder of a Pyodide distribution" in capsys.readouterr().err
    folder = a_distribution(tmp_path / "p", {"numpy": []})
    assert build_drop.main([str(folder), "--out", str(tmp_path / "out")]) == 1
    assert "lacks pyodide.mjs, pyodide.asm.js" in capsys.readouterr().err
    for name in ("PATH", "CLANG", "WASM_LD", "EMSCRIPTEN_HEADERS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(build_pyodide, "HEADERS", ())
    with pytest.raises(build_pyodide.CannotBuild, match=r"needs clang .*, and wasm-ld .*, and the headers"):
        build_pyodide.Compiler.found()
    assert not (tmp_path / "out").exists()


def test_the_folder_has_the_page_the_runtime_and_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {"numpy": [], "protobuf": [], "zstandard": [], "scipy": []}
    runtime = (*build_drop.RUNTIME, *(f"{name}.whl" for name in packages))
    folder = a_distribution(tmp_path / "p", packages, runtime)
    wheel = tmp_path / "logreel-1-cp311-abi3-pyodide_2024_0_wasm32.whl"
    wheel.write_bytes(b"wheel")
    out = tmp_path / "deep/out"
    out.mkdir(parents=True)
    (out / "old").touch()
    build_drop.bundle(build_pyodide.Distribution.of(folder), out, wheel, print)
    files = {path.relative_to(out).as_posix() for path in build_drop.files_of(out)}
    own = {path.name for path in PAGE.iterdir() if path.is_file()}
    assert files == {
        *own, "contents.json", f"wheels/{wheel.name}", "runtime/pyodide-lock.json",
        *(f"runtime/{name}" for name in runtime if name != "scipy.whl"),
    }  # fmt: skip
    contents = json.loads((out / "contents.json").read_text())
    assert contents == {
        "packages": ["numpy", "zstandard", "protobuf"],
        "wheels": [wheel.name],
        "versions": "Python 3.12.7, logreel 1",
    }
    assert (
        list(json.loads((out / "runtime/pyodide-lock.json").read_text())["packages"]) == contents["packages"]
    )
