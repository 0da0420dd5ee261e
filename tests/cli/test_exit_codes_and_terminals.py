"""Exit codes, one sentence per error, safe output, quick start, quiet pipes."""

from __future__ import annotations

import io
import os
import pty
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logreel.cli import draw, main
from logreel.cli.exits import report
from support.builders.sample_logs import tiny
from support.formats import sample_log
from support.harness.cli_runner import Run, Spawn, environment
from support.harness.forked import forked


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["info", "nothing.ulg"], 1, "nothing.ulg: no such file or directory"),
        (["cat", "*.nothing"], 2, "no file matches this pattern"),
        (["info", "empty.ulg"], 5, "empty"),
        (["info", "photo.jpg"], 5, "not a log of a known format"),
        (["cat", "photo.jpg"], 5, "ff d8 ff"),
        (["convert", "photo.jpg", "x.csv/"], 5, "photo.jpg"),
        (["info", "incompatible.ulg"], 1, "incompatible.ulg"),
        (["index", "photo.jpg"], 5, "not a log"),
        (["bogus"], 2, "no such command"),
        (["cat"], 2, "FILE"),
        (["cat", "tiny.ulg", "--bogus"], 2, "see 'logreel cat --help'"),
        (["cat", "tiny.ulg", "-n", "-1"], 2, "-1"),
        (["cat", "tiny.ulg", "--format", "xml"], 2, "xml"),
        (["cat", "tiny.ulg", "-t", "rat"], 2, "nearest: rate"),
        (["cat", "tiny.ulg", "-S", "soon"], 2, "cannot read the time 'soon'"),
        (["cat", "tiny.ulg", "-S", "+2s", "-E", "+1s"], 2, "before the start"),
        (["convert", "tiny.ulg", "x.doc"], 2, "known: .parquet/"),
        (["cat", "damaged.ulg", "-n", "1"], 3, "could not be read"),
        (["convert", "damaged.ulg", "x.csv/"], 3, "could not be read"),
        (["params", "damaged.ulg"], 3, "could not be read"),
        (["text", "damaged.ulg"], 3, "could not be read"),
        (["attachments", "damaged.ulg"], 3, "could not be read"),
        (["stats", "damaged.ulg", "--json"], 3, "could not be read"),
        (["info", "damaged.ulg"], 0, ""),
        (["index", "damaged.ulg"], 0, "wrote"),
        (["schema", "damaged.ulg"], 0, ""),
    ],
)
def test_each_error_has_its_exit_code_and_one_sentence(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(logs)
    done = run(*args)
    assert done.code == code, done.err
    assert words in done.err
    assert "Traceback" not in done.err
    told = [line for line in done.err.splitlines() if not line.startswith("logreel: wrote")]
    assert len(told) == (1 if code else 0)
    assert all(line.startswith("logreel: ") for line in told)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (ZeroDivisionError("oh\x1b"), 1, "internal error: ZeroDivisionError: oh\\x1b"),
        (OSError(28, "No space left on device"), 1, "no space left on device"),
        (SystemExit(4), 4, ""),
        (SystemExit(0), 1, "a plug-in or a library ended the program"),
    ],
)
def test_an_unexpected_exception_becomes_one_sentence(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
) -> None:
    assert report(error) == code
    assert words in capsys.readouterr().err


def test_logreel_traceback_shows_the_traceback(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGREEL_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError):
        main(["cat", str(logs / "nothing")])


@pytest.mark.parametrize("where", ["formats.draw.table", "run"])
def test_ctrl_c_gives_exit_code_130(where: str) -> None:
    # Whoever runs the tests in the background has the signal ignored.
    code = "import signal, time, logreel.cli.formats, logreel.cli as c\n"
    code += f"signal.signal(signal.SIGINT, signal.default_int_handler)\nc.{where} = "
    # Short sleeps: a signal that comes just before a long one would wait for its end.
    code += "lambda *a: (print('up', flush=True), [time.sleep(0.05) for _ in range(900)])\n"
    code += "raise SystemExit(c.main(['formats']))"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    with child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"up\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert child.stderr.read() == b"logreel: interrupted\n"


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are Unicode there")
def test_file_names_may_contain_any_characters(run: Run, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\x1b.ulg")
    path.write_bytes(tiny())
    done = run("info", path)
    assert "\\udcff\\x1b.ulg" in done.out
    assert run("info", path, "--json").json["path"] == str(path)
    for suffix in (".parquet/", ".csv/", ".arrow/", ".ndjson"):
        out = os.fspath(tmp_path / os.fsdecode(b"\xfe")) + suffix
        assert run("convert", path, out).code == 0
        assert os.path.exists(out)


@pytest.mark.parametrize(
    "verb", [["info"], ["cat"], ["schema"], ["params"], ["text"], ["attachments"], ["stats"]]
)
def test_control_characters_of_a_log_are_escaped_in_every_verb(run: Run, logs: Path, verb: list[str]) -> None:
    done = run(*verb, logs / "hostile.ulg")
    assert done.code in (0, 3), done.err
    text = done.out + done.err
    assert draw.safe(text.replace("\n", "")) == text.replace("\n", "")
    assert "\x1b" not in text


def test_safe_escapes_control_characters() -> None:
    assert draw.safe("a\x1b[31m\n\t\x9b\x7f\u202e\ud800é日") == "a\\x1b[31m\\n\\t\\x9b\\x7f\\u202e\\ud800é日"


def test_csv_on_a_terminal_is_escaped(logs: Path) -> None:
    out = on_terminal("cat", logs / "hostile.ulg", "-t", "~text", "--format", "csv")
    assert b"\x1b" not in out
    assert b"\\x1b" in out


def on_terminal(*args: str | Path) -> bytes:
    """Return everything that a command line prints on a terminal, on stdout and stderr."""
    leader, follower = pty.openpty()
    command = forked(*args)
    child = subprocess.Popen(
        command, stdout=follower, stderr=follower, env={**environment(), "TERM": "xterm"}
    )
    os.close(follower)
    found = b""
    with child, os.fdopen(leader, "rb", buffering=0) as stream:
        while True:
            try:
                piece = stream.read(65536)
            except OSError:  # what Linux says at the end of a terminal
                break
            if not piece:
                break
            found += piece
    return found


def test_check_and_health_wrap_on_terminals_and_not_in_pipes(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = logs / "damaged.ulg"
    for verb, indent in (("check", 9), ("health", 8)):
        lines = on_terminal(verb, path).decode().splitlines()
        assert max(len(line) for line in lines if str(path) not in line) <= 60
        assert any(line.startswith(" " * indent) for line in lines)
        whole = run(verb, path).out.splitlines()
        assert max(len(line.replace(str(path), "")) for line in whole) > 60
        # Of health the first line is the name, of check each one begins with it.
        assert all(line.startswith(f"{path}: ") for line in whole) == (verb == "check")


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    assert draw.wrapped("silent for 57.5 s, though it comes every 100 ms", 15) == [
        "silent for",
        "57.5 s, though",
        "it comes every",
        "100 ms",
    ]


def test_binary_output_to_a_terminal_is_refused(logs: Path) -> None:
    out = on_terminal("attachments", logs / "tiny.ulg", "--name", "blob.bin")
    assert b"is not text" in out
    assert b"\x00" not in out
    assert b"first part" in on_terminal("attachments", logs / "tiny.ulg", "--name", "console.txt")


def test_the_progress_bar_is_only_on_a_terminal(run: Run, logs: Path, tmp_path: Path) -> None:
    out = on_terminal("convert", logs / "tiny.ulg", f"{tmp_path}/x.csv/")
    assert b"\x1b[" in out
    assert b"wrote" in out
    done = run("convert", logs / "tiny.ulg", f"{tmp_path}/y.csv/")
    assert done.err == f"logreel: wrote 34 rows of 7 channels to {tmp_path}/y.csv/\n"


@pytest.mark.parametrize("style", ["text", "ndjson", "csv"])
def test_a_closed_pipe_gives_exit_code_0_and_no_error(logs: Path, style: str) -> None:
    command = [sys.executable, "-m", "logreel", "cat", str(logs / "flight.ulg"), "--format", style]
    command += ["-t", "sensor_combined"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    with child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 0


def test_dash_reads_a_log_from_standard_input(spawn: Spawn, logs: Path) -> None:
    data = (logs / "tiny.ulg").read_bytes()
    done = spawn("-m", "logreel", "cat", "-", "-t", "note", input=data)
    assert done.stdout.startswith(b"1.080000  note")


def test_characters_that_the_encoding_lacks_are_escaped(logs: Path) -> None:
    env = {**environment(), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "logreel", "text", str(logs / "flight.ulg")]
    done = subprocess.run(command, capture_output=True, env=env, timeout=60)
    assert done.returncode == 0
    assert b"\\xb5" in done.stdout


def loaded(spawn: Spawn, code: str) -> set[str]:
    """Top-level modules that *code* loads."""
    script = f"import sys, io\n{code}\nsys.stderr.write('\\n'.join({{m.split('.')[0] for m in sys.modules}}))"
    return set(spawn("-c", script, check=True).stderr.decode().split())


def test_small_commands_do_not_import_large_libraries(spawn: Spawn, logs: Path) -> None:
    heavy = {"pyarrow", "rich", "rich_click", "click", "pandas", "polars"}
    assert not loaded(spawn, "import logreel") & heavy
    version = loaded(spawn, "from logreel.cli import main; main(['--version'])")
    assert not version & {*heavy, "numpy"}
    path = str(logs / "tiny.ulg")
    info = loaded(spawn, f"from logreel.cli import main; main(['info', {path!r}])")
    assert not info & {"pyarrow", "rich"}
    text = loaded(spawn, f"from logreel.cli import main; main(['cat', {path!r}])")
    assert not text & {"pyarrow", "rich"}


def test_tables_of_a_small_log_load_no_functions_of_arrow(spawn: Spawn, logs: Path, tmp_path: Path) -> None:
    # pyarrow.compute takes as long as pyarrow itself, and imports the parser of its documentation.
    code = "import logreel\nfor ch in logreel.open(sys.argv[1]).channels.values():\n    ch.to_arrow()"
    script = f"import sys\n{code}\nsys.stderr.write('\\n'.join(sys.modules))"
    modules = set(spawn("-c", script, str(logs / "flight.ulg"), check=True).stderr.decode().split())
    assert "pyarrow.lib" in modules
    assert not modules & {"pyarrow.compute", "pandas"}
    # pyarrow imports pandas to convert a list or a number of Python.
    code = f"import logreel\nlogreel.convert(sys.argv[1], {str(tmp_path / 'tables.parquet')!r} + '/')"
    script = f"import sys\n{code}\nsys.stderr.write('\\n'.join(sys.modules))"
    modules = set(spawn("-c", script, str(logs / "flight.ulg"), check=True).stderr.decode().split())
    assert "pyarrow.parquet" in modules
    assert "pandas" not in modules


@pytest.mark.parametrize("log_format", ["ulog", "rosbag", "mcap"])
def test_the_first_table_loads_no_large_modules_besides_arrow(
    spawn: Spawn, tmp_path: Path, log_format: str
) -> None:
    (tmp_path / "log").write_bytes(sample_log(log_format))
    code = "import sys, numpy, pyarrow\nbefore = {*sys.modules}\nimport logreel\n"
    code += "next(iter(logreel.open(sys.argv[1]).values())).to_arrow()\n"
    code += "sys.stderr.write('\\n'.join({*sys.modules} - before))"
    modules = set(spawn("-c", code, str(tmp_path / "log"), check=True).stderr.decode().split())
    assert "logreel.layout.arrow" in modules
    # Each takes some milliseconds: hashlib links OpenSSL, numpy.ma is what np.unique asks about masks, pathlib parses
    # the networks of ipaddress.
    large = {"concurrent.futures", "hashlib", "importlib.resources", "numpy.ma", "numpy.typing", "pathlib"}
    assert not modules & {*large, "bz2", "random", "shutil", "subprocess", "tempfile"}


def cost(spawn: Spawn, *args: str) -> tuple[int, int, int]:
    """Return what a command loads: modules of logreel, all that NumPy does not load, and kB of source of logreel.

    Formats of other packages are hidden: the list of all commands loads them to know whether they have any.
    """
    code = (
        "import os, sys\nimport logreel.registry as registry\nseen = registry.entry_points_seen() or {}\n"
        "registry.entry_points_seen = lambda: {g: names for g, names in seen.items() if g != 'logreel.formats'}\n"
        "from logreel.cli import main\nmain(sys.argv[1:])\n"
        "loaded = {n: getattr(m, '__file__', None) or '' for n, m in [*sys.modules.items()]}\n"
        "own = {n: f for n, f in loaded.items() if n.partition('.')[0] == 'logreel'}\n"
        "size = sum(os.path.getsize(f) for f in own.values() if f.endswith('.py'))\n"
        "import numpy.linalg, numpy.lib\n"
        "others = [n for n in loaded if n.partition('.')[0] not in ('numpy', 'logreel')]\n"
        "sys.stderr.write(f'{len(own)} {len(others)} {size // 1000}')"
    )
    own, others, size = spawn("-c", code, *args, check=True).stderr.split()[-3:]
    return int(own), int(others), int(size)


@pytest.mark.parametrize(
    ("args", "own", "others", "size"),
    [
        ("--help", 5, 70, 26),
        ("info --help", 5, 70, 26),
        ("info flight.ulg", 50, 134, 642),
        ("cat -n 3 flight.ulg", 71, 160, 875),
        ("params flight.ulg", 60, 145, 746),
        ("text flight.ulg", 63, 155, 795),
    ],
)
def test_small_commands_load_little(
    spawn: Spawn, logs: Path, monkeypatch: pytest.MonkeyPatch, args: str, own: int, others: int, size: int
) -> None:
    monkeypatch.chdir(logs)
    loaded = cost(spawn, *args.split())
    # The parts of which modules of the standard library consist now; shutil of Python 3.14 loads its zstd.
    others += 12 if sys.version_info >= (3, 13) else 0
    assert all(n <= most for n, most in zip(loaded, (own, others, size), strict=True)), loaded


def test_small_commands_take_little_cpu_time(logs: Path) -> None:
    def cpu(*args: str) -> float:
        """Least CPU seconds of three runs."""
        found = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *args], check=True, capture_output=True, env=environment())
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(found)

    bare = cpu("-c", "pass")
    assert cpu("-m", "logreel", "--version") < 4 * bare + 0.15
    # Promised: 0.2 and 0.35 s, of which numpy takes a good part; here in units of what this machine needs for it.
    numpy = cpu("-c", "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import numpy")
    assert cpu("-m", "logreel", "info", str(logs / "flight.ulg")) < 3 * numpy + 0.15


def test_table_columns_are_aligned_for_wide_characters(capsys: pytest.CaptureFixture[str]) -> None:
    draw.table(("name", "n"), [("日本", "1"), ("e\u0301x", "10")], right=(1,))
    assert capsys.readouterr().out == "name   n\n日本   1\ne\u0301x    10\n"


def test_colours_only_on_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert draw.emphasis("x") == "\x1b[1;36mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert draw.emphasis("x") == "x"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (0.1, "0.1"),
        (0.10000000149011612, "0.1"),
        (1e300, "1e+300"),
        (float("nan"), "nan"),
        (47.3977419, "47.3977419"),
        (b"\x00\xff", "0x00ff"),
        (bytes(20), "0x" + "00" * 16 + "… (20 bytes)"),
        ([1] * 20, None),
        ('a"b', '"a\\"b"'),
        ({"a": 1}, "{a=1}"),
    ],
)
def test_value_text_is_short(value: Any, text: str | None) -> None:
    found = draw.value_text(value)
    assert found == text if text is not None else found.endswith("… (20 in all)]")


def test_size_and_rate_text_have_few_digits() -> None:
    assert [draw.size_text(n) for n in (0, 999, 1000, 99_950, 999_499, 999_500, 10**16)] == [
        "0 B", "999 B", "1.0 kB", "100 kB", "999 kB", "1.0 MB", "10000 TB",
    ]  # fmt: skip
    assert [draw.rate_text(r) for r in (None, 0.5, 49.94, 249.7)] == ["", "0.5 Hz", "49.9 Hz", "250 Hz"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_is_reported_once(logs: Path) -> None:
    command = [sys.executable, "-m", "logreel", "cat", str(logs / "flight.ulg")]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60)
    assert done.returncode == 1
    assert done.stderr == b"logreel: no space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize(
    "verb", ["info", "info --json", "summary", "du", "check", "health", "stats", "text", "params"]
)
def test_a_full_stdout_is_a_failure_and_no_partial_success(verb: str, logs: Path) -> None:
    command = forked(*verb.split(), logs / "flight.ulg")
    # Unbuffered, so that the first line fails and not the flush at the end.
    unbuffered = environment() | {"PYTHONUNBUFFERED": "1"}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=unbuffered, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith(b"logreel: no space left on device\n")


def test_a_closed_stdout_is_accepted(logs: Path) -> None:
    command = f"'{sys.executable}' -m logreel info '{logs / 'tiny.ulg'}' >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment(), timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
