"""``make release-check`` finds what it says it looks for, and holds today; ``make man`` writes a page that renders."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import click
import pytest

from logreel.cli.app import logreel as group

ROOT = Path(__file__).resolve().parents[1]


def tool(name: str) -> ModuleType:
    """Return a module of tools/."""
    spec = spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release_check = tool("release_check")


def faults(found: Iterator[str]) -> list[str]:
    """Return what should always hold and does not, without what a person does for each release."""
    return [text for text in found if not isinstance(text, release_check.ToDo)]


@pytest.mark.parametrize(
    "point", ["version", "changelog", "pictures and links", "index of pages", "metadata"]
)
def test_the_tree_has_no_faults(point: str) -> None:
    assert faults(release_check.POINTS[point](ROOT)) == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a small tree that is ready for a release."""
    files = {
        "pyproject.toml": '[project]\nversion = "1.2.3"\nreadme = "README.md"\nlicense = "Apache-2.0"\n'
        "[project.optional-dependencies]\nsql = []\n",
        "src/logreel/_version.py": '__version__ = "1.2.3"\n',
        "CITATION.cff": "version: 1.2.3\ndate-released: 2026-12-01\n",
        "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-12-01\n\n### Added\n\n- All.\n",
        "LICENSE": "",
        "README.md": "# A\n\n![a picture](docs/images/a.png) [b](docs/b.md#two-words) `logreel[sql]`\n",
        "docs/images/a.png": "",
        "docs/b.md": "# B\n\n## Two words\n\n```sh\n# no heading\n[no](link.md)\n```\n",
        "docs/README.md": "# Docs\n\n[b](b.md)\n",
        "docs/llms.txt": "# a\n\n- [b](b.md): b\n- [docs](README.md): all\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


#: A point, the file that is changed, what is replaced by what, and what is said then.
PLANTED = [
    ("version", "CITATION.cff", "1.2.3", "1.2.4", "CITATION.cff says 1.2.4"),
    ("version", "src/logreel/_version.py", "1.2.3", "1.2.2", "_version.py says 1.2.2"),
    ("version", "CITATION.cff", "date-released: 2026-12-01\n", "", "no date-released"),
    ("changelog", "CHANGELOG.md", "## 1.2.3 - 2026-12-01", "## 1.2.2 - 2026-12-01", "no section '1.2.3"),
    ("changelog", "CHANGELOG.md", "2026-12-01", "soon", "no date"),
    ("changelog", "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- More.\n", "content beside"),
    ("changelog", "CHANGELOG.md", "### Added", "### News", "no kind of change"),
    ("changelog", "CHANGELOG.md", "## Unreleased\n", "", "does not begin"),
    ("pictures and links", "README.md", "a.png", "c.png", "c.png does not exist"),
    ("pictures and links", "README.md", "a picture", "", "without a text"),
    ("pictures and links", "README.md", "#two-words", "#no-heading", "no such heading"),
    ("pictures and links", "README.md", "docs/b.md", "../b.md", "outside"),
    ("index of pages", "docs/README.md", "[b](b.md)", "", "README.md does not name b.md"),
    ("index of pages", "docs/llms.txt", "- [b](b.md): b\n", "", "llms.txt does not name b.md"),
    ("metadata", "README.md", "[sql]", "[sqk]", "the extra sqk"),
]


@pytest.mark.parametrize(("point", "name", "before", "after", "says"), PLANTED)
def test_a_fault_is_found(tree: Path, point: str, name: str, before: str, after: str, says: str) -> None:
    check: Callable[[Path], Iterator[str]] = release_check.POINTS[point]
    assert list(check(tree)) == []
    text = (tree / name).read_text()
    assert before in text
    (tree / name).write_text(text.replace(before, after))
    found = list(check(tree))
    assert found, f"{point} finds nothing"
    assert says in found[0]


def test_a_tag_must_name_the_version(tree: Path) -> None:
    assert list(release_check.check_tag(tree, "v1.2.3")) == []
    assert "v1.2.4 does not name" in next(release_check.check_tag(tree, "v1.2.4"))
    (tree / "CITATION.cff").write_text("version: 1.2.2\n")
    assert next(release_check.check_tag(tree, "v1.2.3")).startswith("CITATION.cff says 1.2.2")


def test_what_is_not_committed_is_to_do(tree: Path) -> None:
    def git(*words: str) -> None:
        about = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *about, *words], cwd=tree, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "All")
    assert list(release_check.check_tree(tree)) == []
    (tree / "new.txt").write_text("")
    assert list(release_check.check_tree(tree)) == ["not committed: new.txt"]
    packed = {"logreel/old.py", "logreel/kernels/a.abi3.so", "logreel-1.2.3.dist-info/RECORD"}
    assert list(release_check.differing_files(tree, packed)) == [
        "the wheel lacks logreel/_version.py",
        "the wheel has logreel/old.py, which is no file of the package",
    ]


def test_every_point_of_the_page_is_walked() -> None:
    page = (ROOT / "docs/release.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0].strip("| ") for line in page.splitlines() if line.startswith("| ")]
    named = set(rows) - {"point", "tests"}
    walked = {"pictures" if name == "pictures and links" else name for name in release_check.POINTS} | {
        "links"
    }
    assert named == walked


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield the path of each command and the command."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, click.Context(inner, info_name=name, parent=context))
    else:
        yield context.command_path, command


def test_the_manual_page_has_every_verb_and_option_and_renders() -> None:
    page: str = tool("man_page").page()
    assert page.startswith(".TH LOGREEL 1 ")
    sections = re.findall(r"^\.SH (.+)$", page, re.MULTILINE)
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES"} <= set(sections)
    parts = dict(re.findall(r'^\.SS "(.+)"\n((?:(?!\.S[SH] ).*\n)*)', page, re.MULTILINE))
    for path, command in commands(group, click.Context(group, info_name="logreel")):
        part = parts[path.removeprefix("logreel ").replace("-", "\\-")]
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                for name in option.opts:
                    assert name.replace("-", "\\-") in part, (path, name)
    # A line that begins with a point is a macro; nothing else may.
    assert set(re.findall(r"^\.(\w*)", page, re.MULTILINE)) <= {"TH", "SH", "SS", "TP", "PP"}
    if groff := shutil.which("groff"):
        done = subprocess.run(
            [groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-P-c"],
            input=page,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0
        assert done.stderr == ""
        text = re.sub(".\b", "", done.stdout)
        assert re.search(r"^ +logreel slice .*-o", text, re.MULTILINE)
