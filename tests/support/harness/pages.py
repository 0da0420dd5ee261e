"""Run the examples of a page: ``python pages.py PAGE`` types a page in this folder, and prints seconds by heading.

``python`` blocks share one namespace per page. ``console`` blocks run their ``$ logreel …`` lines; output
shown below a command is compared with doctest's ``...`` wildcards. ``sh`` blocks run the lines that begin
with ``logreel`` or ``./logreel``. All run in page order in the current folder. Two HTML comments steer this:
``<!-- no-test: reason -->`` just before a block skips it, ``<!-- setup: python code -->`` runs unseen.
Nothing but the standard library is imported, so that an environment without pytest can do it.
"""

from __future__ import annotations

import argparse
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w-]*)")
COMMENT = re.compile(r"<!--\s*(?P<kind>no-test|setup):(?P<text>.*?)-->", re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELLS = {"sh", "bash", "shell"}
#: A page must not depend on the terminal in which it is run.
ENVIRONMENT = {
    "COLUMNS": "120",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PYTHONWARNINGS": "error",
    "LC_ALL": "C.UTF-8",
}
#: What users start.
PROCESS = (sys.executable, "-m", "logreel")


class Block(NamedTuple):
    """A fenced block, or the code of a setup comment; *line*: number of its first code line."""

    line: int
    language: str
    code: str
    heading: str
    shown: bool = True


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page that are to be run, in order."""
    lines = page.splitlines()
    skip, at, heading = False, 0, ""
    while at < len(lines):
        start = at
        at += 1
        if opening := FENCE.match(lines[start]):
            close = re.compile(rf" *{opening['fence']}[`~]* *$")
            while at < len(lines) and not close.match(lines[at]):
                at += 1
            if not skip:
                code = "\n".join(lines[start + 1 : at]) + "\n"
                yield Block(start + 2, opening["language"], textwrap.dedent(code), heading)
            skip, at = False, at + 1
        elif lines[start].lstrip().startswith("<!--"):
            while "-->" not in lines[at - 1] and at < len(lines):
                at += 1
            comment = COMMENT.search("\n".join(lines[start:at]))
            if comment and comment["kind"] == "setup":
                code = textwrap.dedent(comment["text"]).lstrip(" ")
                yield Block(start + 1, "python", code, heading, shown=False)
            skip = bool(comment and comment["kind"] == "no-test" and comment["text"].strip())
        elif lines[start].strip():
            skip = False
            if lines[start].startswith("#"):
                heading = lines[start].lstrip("# ")


def commands(block: Block) -> Iterator[tuple[int, str, str]]:
    """Yield line, shell command and expected output ("" = not compared) of every logreel call in a block."""
    prompt = r"\$ " if block.language == "console" else r"(?:\$ )?"
    head = re.compile(rf"^{prompt}((?:\./)?logreel (?:\\\n|.)*)\n", re.MULTILINE)
    for call in head.finditer(block.code):
        line = block.line + block.code.count("\n", 0, call.start())
        output = ""
        if block.language == "console":
            output = re.split(r"^\$ ", block.code[call.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        yield line, re.sub(r"\\\n(> )?", "", call[1]), output.rstrip("\n")


#: A line that needs no shell: plain words, words in quotes in which a shell replaces nothing, what is said of the exit
#: code, and a comment.
ALONE = re.compile(
    r"""logreel((?: +(?:[\w./:,=@%^+-]|'[^'\n]*'|"[^"\n$`\\]*")+)*)"""
    r"""(?: +\|\| +echo +"([^"\n$`\\]*(?:\$\?[^"\n$`\\]*)?)")? *(?: #.*)?"""
)


def run_alone(
    command: str, run: Callable[[list[str]], subprocess.CompletedProcess[bytes]]
) -> subprocess.CompletedProcess[bytes] | None:
    """Run the arguments of a line that needs no shell with *run*; return None for other lines."""
    line = ALONE.fullmatch(command)
    if line is None or not (words := shlex.split(line[1])):
        return None
    done = run(words)
    if done.returncode and line[2] is not None:
        told = line[2].replace("$?", str(done.returncode))
        return subprocess.CompletedProcess(command, 0, done.stdout + told.encode() + b"\n")
    return done


def run_command(
    page: str, line: int, command: str, expected: str, program: Sequence[str] = PROCESS, here: bool = False
) -> None:
    """Run a shell line in which *program* is ``logreel``, pipes included; without it that of this interpreter.

    here  True: a line that needs no shell runs in this process
    """
    plain = re.sub(r"(?<![\w./])\./logreel\b", "logreel", command)
    variables = {**os.environ, **ENVIRONMENT}
    done = None
    if here:
        from support.harness.cli_runner import run_here

        done = run_alone(plain, lambda words: run_here(words, ENVIRONMENT))
    elif tuple(program) != PROCESS:
        from support.harness.forked import run_forked

        done = run_alone(plain, lambda words: run_forked([*program, *words], variables, 300, joined=True))
    if done is None:
        script = f'logreel() {{ {shlex.join(program)} "$@"; }}\n{plain}\n'
        done = subprocess.run(
            ["sh", "-c", script],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
    output = done.stdout.decode().replace("\r\n", "\n")
    assert done.returncode == 0, f"{page}:{line}: {command}: exit {done.returncode}\n{output}"
    if expected:
        example = doctest.Example(command, expected + "\n")
        checker = doctest.OutputChecker()
        if not checker.check_output(example.want, output, FLAGS):
            difference = checker.output_difference(example, output, FLAGS)
            raise AssertionError(f"{page}:{line}: {command}\n{difference}")


def run_python(page: str, block: Block, names: dict[str, Any]) -> None:
    """Run a block, as a doctest if it shows prompts; tracebacks point into the page."""
    if block.code.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.code, names, page, page, block.line - 1)
        report: list[str] = []
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
        names.update(test.globs)
        assert not report, "".join(report)
    else:
        exec(compile("\n" * (block.line - 1) + block.code, page, "exec"), names)  # noqa: S102 - our own pages


def run_page(
    page: str, text: str, program: Sequence[str] = PROCESS, setup: bool = True, here: bool = False
) -> dict[str, float]:
    """Run all blocks of a page in the current directory, and return seconds by heading.

    *program* is ``logreel``, *here* as in ``run_command``; without *setup*, only what a reader sees is run.
    """
    names: dict[str, Any] = {"__name__": "__page__"}
    seconds: dict[str, float] = {}
    for block in blocks(text):
        begin = time.perf_counter()
        if block.language in {"python", "pycon"} and (setup or block.shown):
            run_python(page, block, names)
        elif block.language in {"console", *SHELLS}:
            for line, command, expected in commands(block):
                run_command(page, line, command, expected, program, here)
        seconds[block.heading] = seconds.get(block.heading, 0.0) + time.perf_counter() - begin
    return seconds


def main(words: Sequence[str]) -> None:
    """Run a page with the ``logreel`` on the path, and print seconds by heading as JSON in the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--without", default="", help="pattern of what of the page is left out")
    parser.add_argument("--as-shown", action="store_true", help="leave out setup comments")
    options = parser.parse_args(words)
    text = options.page.read_text(encoding="utf-8")
    if options.without:
        text = re.sub(options.without, "", text, flags=re.MULTILINE)
    program = shutil.which("logreel")
    assert program, "no logreel on the path"
    print(json.dumps(run_page(options.page.name, text, (program,), not options.as_shown)))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
