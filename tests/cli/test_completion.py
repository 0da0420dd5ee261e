"""Completion with the Tab key in bash, zsh and fish on a terminal, and the answers to their scripts."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logreel.cli.completion import Word, split_line
from logreel.cli.help import VERBS
from logreel.io.platform import readable
from support.builders.sample_logs import tiny
from support.harness.cli_runner import SRC, Run, environment
from support.samples.ulog.builder import flight

#: Seconds that a shared machine may take for one answer.
PATIENCE = 90.0
PROMPT = "ready> "
#: Fields of a topic in every log of these tests.
PAIR = ("timestamp", "flag", "cells.volt", "cells.id")
#: What bash takes as ends of words.
BREAKS = " \t\n\"'><=;|&(:"
_CONTROL = re.compile(
    r"\x1b\[[0-9;?<>=]*[ -/]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x07\r]"
)


class Shell:
    """An interactive shell on a separate terminal."""

    def __init__(self, name: str, folder: Path, home: Path) -> None:
        start = {
            "bash": ["bash", "--norc", "--noprofile", "-i"],
            "zsh": ["zsh", "-f", "-i"],
            "fish": ["fish", "--private", "-i"],
        }[name]
        self.name = name
        self.process, self.terminal = pty.fork()
        if not self.process:
            os.chdir(folder)
            environment = {
                "HOME": str(home), "PATH": f"{home}:/usr/bin:/bin", "TERM": "dumb", "LC_ALL": "C.UTF-8", "PS1": PROMPT,
                "LOGREEL_COMPLETE_SECONDS": str(PATIENCE), "LOGREEL_CACHE": "off", "COLUMNS": "200", "LINES": "50",
                "BASH_SILENCE_DEPRECATION_WARNING": "1",
            }  # fmt: skip
            os.execvpe(start[0], start, environment)
        self.seen = ""
        set_up = {
            "bash": f"bind 'set show-all-if-ambiguous on'; PS1='{PROMPT}'; eval \"$(logreel completion bash)\"",
            "zsh": f"autoload -Uz compinit; compinit -D -u; PS1='{PROMPT}'; unsetopt list_beep; "
            'eval "$(logreel completion zsh)"',
            "fish": f"function fish_prompt; echo -n '{PROMPT}'; end; logreel completion fish | source",
        }[name]
        self.send(f"{set_up}; echo set''-up\n")
        self.wait("set-up")

    def send(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def wait(self, *words: str) -> str:
        """Read until all *words* are shown; return the output."""
        end = time.monotonic() + PATIENCE
        while not all(word in self.seen for word in words):
            assert time.monotonic() < end, f"waiting for {words}, the terminal shows {self.seen!r}"
            if readable(self.terminal, 1):
                self.seen += _CONTROL.sub("", os.read(self.terminal, 65536).decode("utf-8", "replace"))
        return self.seen

    def tab(self, line: str, *words: str) -> None:
        """Type *line* and the Tab key, and wait for *words*; then clear the line."""
        self.seen = ""
        self.send(line + "\t")
        self.wait(*words)
        self.send("\x15")

    def tab_and_run(self, line: str, *words: str) -> None:
        """Type *line*, the Tab key, and Enter once it is completed to the first of *words*."""
        self.seen = ""
        self.send(line + "\t")
        self.wait(words[0])
        self.send("\n")
        self.wait(*words)

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    if shutil.which(request.param, path="/usr/bin:/bin") is None:
        pytest.skip(f"{request.param} is not installed")
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    program = home / "logreel"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={SRC} exec "{sys.executable}" -m logreel "$@"\n')
    program.chmod(0o755)
    (folder / "flight one.ulg").write_bytes(tiny())
    (folder / "plain.ulg").write_bytes(tiny())
    (folder / "parts").mkdir()
    opened = Shell(request.param, folder, home)
    yield opened
    opened.close()


def test_the_tab_key_completes_verbs_files_topics_and_options(shell: Shell) -> None:
    shell.tab("logreel for", "formats")
    shell.tab("logreel sc", "schema")
    # Names of files, which a script that answers alone would hide.
    shell.tab("logreel info pl", "plain.ulg")
    shell.tab("logreel slice plain.ulg -o pl", "plain.ulg -o plain.ulg")
    shell.tab("logreel info fl", "one.ulg")
    shell.tab("logreel split plain.ulg -o pa", "plain.ulg -o parts/")
    # Topics of the log on the line.
    shell.tab("logreel cat plain.ulg -t no", "plain.ulg -t note")
    shell.tab("logreel schema plain.ulg pa", "plain.ulg pair")
    if shell.name == "bash":
        # The others show a list when the key is pressed again.
        shell.tab("logreel cat plain.ulg -x ra", "rate", "rate\\[1\\]")
    shell.tab("logreel cat plain.ulg --topic=no", "--topic=note")
    # Fields of one.
    shell.tab("logreel cat plain.ulg -t note.te", "plain.ulg -t note.text")
    shell.tab("logreel stats plain.ulg -t note:timestamp,te", "plain.ulg -t note:timestamp,text")
    # Options, and their values.
    shell.tab("logreel cat plain.ulg --interp", "--interpolate")
    shell.tab("logreel cat plain.ulg --format nd", "--format ndjson")


def test_what_is_completed_can_be_run(shell: Shell) -> None:
    shell.tab_and_run("logreel cat plain.ulg -n 1 -t no", "-t note", 'text="hi"')
    shell.tab_and_run("logreel info fli", "one.ulg", "messages")


# -- answers to the scripts


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extend the timeout, whose end would end this process."""
    monkeypatch.setenv("LOGREEL_COMPLETE_SECONDS", "600")


def ask(run: Run, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    monkeypatch.setenv("_LOGREEL_COMPLETE", "bash")
    done = run(line, str(len(line)), BREAKS)
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


Ask = Callable[[str], list[str]]


@pytest.fixture
def tab(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(tiny())
    Path("my log.ulg").write_bytes(tiny())
    Path("photo.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    return lambda line: ask(run, monkeypatch, line)


def test_verbs_and_shells_are_completed(tab: Ask) -> None:
    verbs = [verb for verbs in VERBS.values() for verb in verbs]
    assert tab("logreel ")[: len(verbs) + 1] == ["plain", *verbs]
    assert tab("logreel c") == ["plain", "cat", "check", "ci", "compare", "convert", "completion", "carla"]
    assert tab("logreel carla bl") == ["plain", "blocked"]
    assert tab("logreel completion ") == ["plain", "bash", "zsh", "fish"]


@pytest.mark.parametrize(
    "line",
    [
        "info ", "cat ", "cat a.ulg -o ", "convert a.ulg ", "convert a.ulg -o x", "sql 'SELECT 1' a", "diff a.ulg ",
        "record ", "record x.bag --like ", "record --from ", "check --contract ", "cat a.ulg --msgdef ", "serve ",
        "view ", "view --layout ",
        "merge a.ulg a.u", "carla info ", "play a.ulg ", "recover a.ulg --output ", "info '",
    ],
)  # fmt: skip
def test_files_are_left_to_the_shell(tab: Ask, line: str) -> None:
    assert tab(f"logreel {line}") == ["file"]


def test_folders_are_left_to_the_shell(tab: Ask) -> None:
    assert tab("logreel split a.ulg -o ") == tab("logreel demo --dir x") == ["dir"]
    assert tab("logreel attachments a.ulg -o ") == ["dir"]


@pytest.mark.parametrize(
    "line",
    [
        "cat a.ulg -t ", "cat a.ulg -x ", "cat a.ulg -n 3 -t pair -t ", "info a.ulg -t ", "slice a.ulg -o x.ulg -x ",
        "merge photo.jpg a.ulg -o x.ulg -t ", "diff a.ulg none.ulg -t ", "schema a.ulg ", "stats a.ulg --topic ",
        "convert 'my log.ulg' -t ", "convert my\\ log.ulg x.csv --clock ", "play a.ulg -t ", "cat a.ulg --topic=",
    ],
)  # fmt: skip
def test_topics_of_the_log_on_the_line_are_completed(tab: Ask, line: str) -> None:
    assert tab(f"logreel {line}") == ["plain", "pair", "rate", "rate\\[1\\]", "note"]
    if not line.endswith("="):
        assert tab(f"logreel {line}n") == ["plain", "note"]
        assert tab(f"logreel {line}'rate[") == ["plain", "rate[1]"]
        assert tab(f"logreel {line}~t") == ["plain", "\\~text"]


@pytest.mark.parametrize(
    "line", ["cat a.ulg -t ", "stats a.ulg -t ", "convert a.ulg x.csv -t ", "cat a.ulg --topic="]
)
def test_fields_are_completed_after_their_topic(tab: Ask, line: str) -> None:
    assert tab(f"logreel {line}pair.") == ["plain", *(f"pair.{field}" for field in PAIR)]
    # bash replaces only what follows the colon, which ends a word for it.
    assert tab(f"logreel {line}pair:") == ["plain", *PAIR]
    first, *others = PAIR
    assert tab(f"logreel {line}pair:{first},") == ["plain", *(f"{first},{field}" for field in others)]
    assert tab(f"logreel {line}pair.{first[:2]}") == ["plain", f"pair.{first}"]
    assert tab(f"logreel {line}pair.zz") == tab(f"logreel {line}none.") == ["plain"]


def test_parameters_are_completed_after_a_log(tab: Ask) -> None:
    assert tab("logreel params a.ulg G") == ["plain", "GAIN"]
    assert tab("logreel params a.ulg GAIN M") == ["plain", "MODE"]
    # Where no parameter fits, another file may follow.
    for line in ("", "a", "a.ulg ", "a.ulg b"):
        assert tab(f"logreel params {line}") == ["file"]


@pytest.mark.parametrize("line", ["cat a.ulg -t ", "slice a.ulg -o x.ulg -x ", "info a.ulg --topic "])
def test_conditions_are_completed_where_no_topic_fits(tab: Ask, line: str) -> None:
    assert tab(f"logreel {line}ty") == ["plain", "type=pair", "type=rate", "type=note"]
    # bash replaces only what follows the sign, which ends a word for it.
    assert tab(f"logreel {line}type=n") == ["plain", "note"]
    assert tab(f"logreel {line}type=rate,multi") == ["plain", "rate,multi_id=0", "rate,multi_id=1"]
    assert tab(f"logreel {line}type=rate,multi_id=1") == ["plain", "1"]
    assert tab(f"logreel {line}typo=") == ["plain"]


@pytest.mark.parametrize(
    "line", ["slice a.ulg -o x.ulg -t ", "info a.ulg -t ", "cat a.ulg -x ", "play a.ulg -t "]
)
def test_no_field_is_offered_where_none_can_be_chosen(tab: Ask, line: str) -> None:
    assert tab(f"logreel {line}pair.") == ["plain"]


@pytest.mark.parametrize(
    "line",
    [
        "cat -t ", "cat none.ulg -t ", "cat photo.jpg -t ", "cat . -t ", "cat a.ulg -S ", "cat a.ulg -n ", "bogus ",
        "sql ", "cat - -t ", "cat a.ulg -t zz",
    ],
)  # fmt: skip
def test_nothing_is_completed_without_an_error(tab: Ask, line: str) -> None:
    assert tab(f"logreel {line}") == ["plain"]


def test_options_and_their_values_are_completed(tab: Ask) -> None:
    assert tab("logreel cat a.ulg --st") == ["plain", "--start"]
    assert tab("logreel cat a.ulg --format ") == ["plain", "text", "ndjson", "csv"]
    assert "--topic" in tab("logreel cat --")


def test_malformed_requests_print_nothing_on_stderr(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for shell, *args in (("bash",), ("bash", "x", "y", "z"), ("zsh",), ("fish",), ("tcsh", "cat", ""), ("",)):
        monkeypatch.setenv("_LOGREEL_COMPLETE", shell)
        done = run(*args)
        assert (done.code, done.err) == (0, "")


def test_other_shells_get_values_with_hints(run: Run, monkeypatch: pytest.MonkeyPatch, tab: Ask) -> None:
    monkeypatch.setenv("_LOGREEL_COMPLETE", "zsh")
    assert run("cat", "a.ulg", "-t", "rate").out == "plain\nrate\trate\nrate[1]\trate\n"
    assert run("cat", "a.ulg", "--topic=n").out == "plain\nnote\tnote\n"
    monkeypatch.setenv("_LOGREEL_COMPLETE", "fish")
    assert run("cat", "my log.ulg", "--topic=n").out == "plain\n--topic=note\tnote\n"
    assert run("che").out == "plain\ncheck\tCheck logs for defects: damage, checksums,...\n"


def test_lines_are_read_as_a_shell_reads_them() -> None:
    assert split_line("a b", "") == (["a"], Word("b"))
    assert split_line("a  'b c' ", "") == (["a", "b c"], Word(""))
    assert split_line("a b\\ c \"d'\" '' x", "") == (["a", "b c", "d'", ""], Word("x"))
    assert split_line("a 'b c", "") == (["a"], Word("b c", "'"))
    assert split_line("a --x=/y:z", BREAKS) == (["a"], Word("--x=/y:z", "", 7))
    assert split_line("a \\", "") == (["a"], Word(""))
    assert split_line("", "") == ([], Word(""))


@pytest.mark.parametrize("words", [("cat", "flight.ulg", "-t", ""), ("",)], ids=["topics", "verbs"])
def test_completion_takes_less_than_a_second_of_cpu_time(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "flight.ulg").write_bytes(flight())
    command = [sys.executable, "-m", "logreel", *words]
    worked = []
    for _ in range(3):
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            env={**environment(), "_LOGREEL_COMPLETE": "zsh"},
        ) as process:
            # Of the processor's time, since a shared machine lets everyone wait.
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
        worked.append(used.ru_utime + used.ru_stime)
    assert min(worked) < 1.0


def test_completion_gives_up_on_a_log_that_does_not_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.ulg")
    command = [sys.executable, "-m", "logreel", "cat", "slow.ulg", "-t", ""]
    env = {**environment(), "_LOGREEL_COMPLETE": "zsh", "LOGREEL_COMPLETE_SECONDS": "0.5"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=env, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
