"""Every example of README.md and docs/ runs, and prints the output that the page shows (support/harness/pages.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from logreel.formats.koblenz import definitions as koblenz
from support.harness.cli_runner import environment
from support.harness.forked import SRC, forked, forked_python, run_forked, start_variables
from support.harness.pages import ENVIRONMENT, PROCESS, blocks, commands, run_alone, run_command, run_page

ROOT = Path(__file__).resolve().parents[1]
SKILL = ROOT / "skills/logreel/SKILL.md"
PAGES = [
    path for path in (ROOT / "README.md", SKILL, *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()
]
#: Words of pages whose commands must not see what the code of the page has imported and registered: they are forks.
#: Those of other pages run here, which is fastest; what needs a shell is a fork, and the first lines of README.md,
#: below, are started as users start them.
EXTENDING = re.compile(r"entry_points|register_type\(|sys\.modules")


def in_forks(monkeypatch: pytest.MonkeyPatch, path: str = str(SRC)) -> list[str]:
    """Return the command line of forks, after setting the PYTHONPATH that its server has: it forks for no other."""
    monkeypatch.setenv("PYTHONPATH", path)
    return forked(path=path)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Types of messages that a page registers, like its settings below, are not for the tests behind it.
    monkeypatch.setattr(koblenz, "_registered", dict(koblenz._registered))
    program, text = in_forks(monkeypatch), path.read_text(encoding="utf-8")
    before = dict(os.environ)
    try:
        run_page(path.relative_to(ROOT).as_posix(), text, program, here=not EXTENDING.search(text))
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_examples_have_the_variables_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """For others it starts a process for each command, which nobody noticed."""
    # Forks have the locale of the server alone.
    monkeypatch.delenv("LC_ALL", raising=False)
    due = start_variables({**os.environ, "PYTHONPATH": str(SRC)})
    in_forks(monkeypatch)
    assert start_variables({**os.environ, **ENVIRONMENT}) == due


def test_the_index_for_language_models_names_every_page_once() -> None:
    text = (ROOT / "docs/llms.txt").read_text(encoding="utf-8")
    # A title, a summary, sections of links with a text each: https://llmstxt.org
    assert re.match(r"# logreel\n\n> \S", text)
    lines = [line for line in text.partition("\n## ")[2].splitlines()[1:] if line and line[:3] != "## "]
    links = [re.fullmatch(r"- \[[^\]]+\]\(([^)]+)\): \S.*", line) for line in lines]
    assert all(links), lines
    named = [(ROOT / "docs" / link[1]).resolve() for link in links if link]
    pages = [path for path in PAGES if path.parent.name != "decisions" or path.name == "README.md"]
    assert sorted(named) == sorted(set(pages) - {ROOT / "README.md"})


def test_the_pictures_of_first_screens_are_those_that_the_tool_takes() -> None:
    spec = spec_from_file_location("screenshots", ROOT / "tools/screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    due = {
        f"{name}-{theme}-{width}.webp"
        for name in tool.LOGS
        for theme in tool.THEMES
        for width, _ in tool.WINDOWS
    }
    assert {path.name for path in tool.SCREENS.iterdir()} == due
    assert sum(path.stat().st_size for path in tool.IMAGES.rglob("*") if path.is_file()) < 3_500_000
    for path in tool.SCREENS.iterdir():
        head = path.read_bytes()[:12]
        assert (head[:4], head[8:]) == (b"RIFF", b"WEBP")


def test_the_skill_begins_with_what_programs_read_of_it() -> None:
    head = SKILL.read_text(encoding="utf-8").split("---\n")[1]
    members = dict(line.split(": ", 1) for line in head.splitlines())
    assert set(members) == {"name", "description"}
    assert members["name"] == SKILL.parent.name
    assert re.fullmatch("[a-z0-9-]{1,64}", members["name"])
    assert 100 < len(members["description"]) <= 1024


def test_the_schemas_of_answers_are_current() -> None:
    done = run_forked(forked_python(ROOT / "tools/describe_answers.py", "--check"), environment(), 60)
    assert done.returncode == 0, done.stderr


#: Packages that only extras install.
EXTRAS = (
    "pandas", "polars", "xarray", "duckdb", "cryptography", "av", "rerun", "foxglove", "websockets", "pmtiles", "ray",
    "daft", "obstore", "zarr", "h5py", "lance", "matplotlib", "plotext", "pyarrow", "starlette", "uvicorn",
)  # fmt: skip
#: A block that the page lists under its extra.
UNDER_EXTRA = re.compile(
    r"^(?:\*\*.*\*\* )?With `pip install '\.\[.*\n\n```.*\n(?:.*\n)*?```\n", re.MULTILINE
)


@pytest.mark.parametrize(("page", "end"), [("README.md", "\n## Install"), ("docs/cli.md", "\n## ")])
def test_the_first_lines_need_no_more_than_what_make_demo_installs(
    page: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, found, _ = (ROOT / page).read_text(encoding="utf-8").partition(end)
    assert found
    core = UNDER_EXTRA.sub("", text)
    assert text.count("ith `pip install '.[") == len(UNDER_EXTRA.findall(text)) >= 1
    # A module of None in sys.modules would be one for pyarrow, which looks for pandas there.
    blocker = f"""
import sys
class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing)
"""
    (tmp_path / "sitecustomize.py").write_text(blocker)
    python_path = os.pathsep.join([str(tmp_path), str(SRC)])
    monkeypatch.setenv("PYTHONPATH", python_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    exec(blocker, {})  # noqa: S102 - our own text
    for name in EXTRAS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.chdir(tmp_path)
    run_page(page, core, PROCESS if page == "README.md" else in_forks(monkeypatch, python_path))


def test_the_readme_is_read_in_minutes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert "](docs/images/" in text.partition("\n## ")[0]


PAGE = """
<!-- setup: x = 1 -->
```python
x += 1
```

<!-- no-test: needs a robot -->

```python
raise SystemError
```

- in a list

  ```python
  >>> x
  2
  ```

<!-- setup:
assert x == 2
x = 3
-->
```text
nothing to run
```
```pycon
>>> x
3
```
"""


def test_blocks_share_names_and_comments_steer(tmp_path: Path) -> None:
    run_page("page.md", PAGE)


def test_a_failing_block_is_reported_at_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("page.md", "one\n\n```python\nx = 1\nx / 0\n```\n")
    assert caught.traceback[-1].lineno == 4
    with pytest.raises(AssertionError, match=r"line 3, in page.md"):
        run_page("page.md", "\n```pycon\n>>> 1 + 1\n3\n```\n")


def test_console_lines_are_split_from_their_output() -> None:
    page = "```console\n$ logreel a \\\n    b | cat\nout\n...\nend\n\n$ ls\nfile\n$ logreel c\n```\n"
    (block,) = blocks(page)
    assert list(commands(block)) == [(2, "logreel a     b | cat", "out\n...\nend"), (10, "logreel c", "")]
    (block,) = blocks("```sh\npip install logreel\nlogreel a  # why\n```\n")
    assert list(commands(block)) == [(3, "logreel a  # why", "")]


def test_output_is_compared_with_wildcards() -> None:
    version = f"Python {sys.version.split()[0]}"
    run_command("page.md", 1, f"'{sys.executable}' --version", "Python 3...")
    run_command("page.md", 1, f"'{sys.executable}' --version", version)
    with pytest.raises(AssertionError, match=r"page\.md:7"):
        run_command("page.md", 7, f"'{sys.executable}' --version", "Python 2...")
    with pytest.raises(AssertionError, match="exit 3"):
        run_command("page.md", 1, "exit 3", "")


def test_lines_that_need_no_shell_run_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str]) -> subprocess.CompletedProcess[bytes]:
        calls.append(words)
        return subprocess.CompletedProcess(words, 4 if words[0] == "fail" else 0, b"out\n")

    shown = tmp_path / "logreel"
    shown.write_text("""#!/bin/sh\nprintf '%s\\0' "$@" >>words\necho out\n[ "$1" != fail ] || exit 4\n""")
    shown.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for line in (
        "logreel info a.ulg  # what 'is' in it",
        """logreel sql "SELECT max(x) FROM t WHERE a < 'b'" 'a b.ulg' -t c:d,e=1""",
        """logreel cat "a#b"c'$d'""",
        "logreel fail x || echo \"exit code $?: 'it' ends\"",
        'logreel info x || echo "exit code $?"',
        'logreel fail x || echo "failed"   # why',
    ):
        calls: list[list[str]] = []
        (tmp_path / "words").unlink(missing_ok=True)
        due = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
        done = run_alone(line, run)
        assert done is not None, line
        assert (done.returncode, done.stdout) == (0, due.stdout)
        assert [*calls[0], ""] == (tmp_path / "words").read_text().split("\0")
    for line in (
        "logreel info *.ulg",
        'logreel info "$LOGS/a"',
        "logreel info a > b",
        "logreel cat a | cat",
        'logreel sql "a \\"b\\""',
        "logreel info a#b",
        "logreel fail || true",
        "logreel info; ls",
        "logreel info a && ls",
    ):
        assert run_alone(line, run) is None, line
