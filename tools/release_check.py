"""Walk the list of docs/release.md, ``make release-check``: ``python tools/release_check.py [--quick | --tag v1.2.3]``.

Each point is ``ok``, ``to do`` (what a person does before a release) or ``FAILED`` (what should always hold). No file
of the tree is changed; what is built goes into a temporary folder. Ends with 1 unless all points are ``ok``.
"""

# ruff: noqa: T201 - it is a command

from __future__ import annotations

import atexit
import functools
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import artifacts  # beside this file

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+")
#: Fenced blocks, comments and code, in which nothing is a link.
_NO_LINKS = re.compile(r"^(`{3,}|~{3,}).*?^\1|<!--.*?-->|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
#: What tools write into the tree, and how each is asked whether it is current.
GENERATED = ("tools/lay_out_help.py", "tools/describe_answers.py", "bench/figures.py")


class ToDo(str):
    """A point that is open until a release is made; a plain string is a fault."""

    __slots__ = ()


Found = Iterator[str]


def version(root: Path) -> str:
    """Return the version that pyproject.toml states."""
    stated: str = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return stated


def check_tag(root: Path, tag: str) -> Found:
    """Compare a tag with the version of all places; ``--tag v1.2.3`` does nothing else."""
    if tag != f"v{version(root)}":
        yield f"the tag {tag} does not name the version {version(root)} of pyproject.toml"
    yield from (text for text in check_version(root) if not isinstance(text, ToDo))


def check_version(root: Path) -> Found:
    """Compare the version of all places, and look for a tag that has it already."""
    stated = version(root)
    if not VERSION.fullmatch(stated):
        yield f"pyproject.toml: {stated!r} is no version such as 1.2.3"
    module = (root / "src/logreel/_version.py").read_text("utf-8")
    cited = (root / "CITATION.cff").read_text("utf-8")
    for name, text, pattern in (
        ("src/logreel/_version.py", module, r'^__version__ = "(.+)"$'),
        ("CITATION.cff", cited, r"^version: (.+)$"),
    ):
        match = re.search(pattern, text, re.MULTILINE)
        if match is None or match[1] != stated:
            yield f"{name} says {match[1] if match else 'nothing'}, pyproject.toml {stated}"
    if "date-released:" not in cited:
        yield ToDo("CITATION.cff has no date-released")
    if git(root, "tag", "--list", f"v{stated}"):
        yield ToDo(f"there is a tag v{stated} already: choose the next version")


def check_changelog(root: Path) -> Found:
    """Look for the section of this version, and for an empty Unreleased above it."""
    sections = re.split(r"^## (.+)$", (root / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    heads, texts = sections[::2], [text.strip() for text in sections[1::2]]
    if not heads or heads[0] != "Unreleased":
        yield "CHANGELOG.md does not begin with a section Unreleased"
        return
    stated = version(root)
    dated = [at for at, head in enumerate(heads) if head.startswith(f"{stated} - ")]
    if not dated:
        yield ToDo(f"CHANGELOG.md has no section '{stated} - YYYY-MM-DD'")
    elif not re.fullmatch(r".* - \d{4}-\d\d-\d\d", heads[dated[0]]) or not texts[dated[0]]:
        yield f"CHANGELOG.md: the section {heads[dated[0]]!r} has no date, or no content"
    elif texts[0]:
        yield ToDo(f"CHANGELOG.md: Unreleased has content beside the section of {stated}")
    for head, text in zip(heads, texts, strict=True):
        kinds = re.findall(r"^### (\w+)", text, re.MULTILINE)
        other = set(kinds) - {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        if other:
            yield f"CHANGELOG.md, {head}: {', '.join(sorted(other))} is no kind of change"


def check_tree(root: Path) -> Found:
    """List what is not committed."""
    for line in git(root, "status", "--porcelain").splitlines():
        yield ToDo(f"not committed: {line[3:]}")


def check_generated(root: Path) -> Found:
    """Ask each tool whether what it writes is current."""
    for tool in GENERATED:
        done = subprocess.run(
            [sys.executable, tool, "--check"], cwd=root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            yield f"{tool}: {(done.stdout + done.stderr).strip().splitlines()[-1:] or 'not current'}"


def pages(root: Path) -> list[Path]:
    """Return all pages that people read: at the root, in docs/, skills/, packages/, examples/ and .github/."""
    return sorted(
        path
        for pattern in (
            "*.md",
            "docs/**/*.md",
            "skills/**/*.md",
            "packages/*/*.md",
            "examples/**/*.md",
            ".github/*.md",
        )
        for path in root.glob(pattern)
    )


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def links(page: Path) -> Iterator[tuple[bool, str, str]]:
    """Yield whether it is a picture, the text and the target of each relative link of a page."""
    for picture, text, target in _LINK.findall(_NO_LINKS.sub("", page.read_text("utf-8"))):
        if "://" not in target and not target.startswith("mailto:"):
            yield bool(picture), text, target


def check_links(root: Path) -> Found:
    """Follow every relative link and anchor."""
    known: dict[Path, set[str]] = {}
    for page in pages(root):
        for picture, text, target in links(page):
            name, _, anchor = target.partition("#")
            to = (page.parent / name).resolve() if name else page
            where = f"{page.relative_to(root)}: {target}"
            if not to.is_relative_to(root):
                yield f"{where} is outside of the tree"
            elif not to.exists():
                yield f"{where} does not exist"
            elif picture and not text.strip():
                yield f"{where} is a picture without a text"
            elif anchor and to.suffix == ".md":
                if to not in known:
                    known[to] = anchors(to)
                if anchor not in known[to]:
                    yield f"{where}: that page has no such heading"


def check_index(root: Path) -> Found:
    """Look for pages that the two indexes of docs/ do not name, and for targets that are named twice."""
    docs = root / "docs"
    wanted = {
        page for page in docs.rglob("*.md") if page.parent.name != "decisions" or page.name == "README.md"
    } - {docs / "README.md"}
    for index in (docs / "README.md", docs / "llms.txt"):
        named = {(index.parent / target.partition("#")[0]).resolve() for _, _, target in links(index)}
        # A page of an index of its own, such as docs/formats, is found there.
        for inner in [page for page in named if page.name == "README.md" and page.parent.parent == docs]:
            named |= {(inner.parent / target.partition("#")[0]).resolve() for _, _, target in links(inner)}
        for page in sorted(wanted - named):
            yield f"{index.relative_to(root)} does not name {page.relative_to(docs)}"


def check_metadata(root: Path) -> Found:
    """Compare extras that pages name with those of pyproject.toml, and look for the licence."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    for page in pages(root):
        for named in re.findall(r"(?:logreel|'\.)\[([a-z,]+)\]", page.read_text("utf-8")):
            for extra in set(named.split(",")) - extras:
                yield f"{page.relative_to(root)} names the extra {extra}, which pyproject.toml does not have"
    if not (root / "LICENSE").exists() or project["license"] != "Apache-2.0":
        yield "LICENSE or the licence in pyproject.toml is missing"
    if not (root / project["readme"]).exists():
        yield f"pyproject.toml: {project['readme']} does not exist"


def check_wheel(root: Path) -> Found:
    """Install the wheel that is made from the sdist into a bare environment, and run it there."""
    try:
        _, wheel = built(root)
    except artifacts.BuildError as error:
        yield f"the wheel does not build: {error}"
        return
    with zipfile.ZipFile(wheel) as content:
        yield from differing_files(root, set(content.namelist()))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        unpack = (
            "import lzma, logreel.cli.show as s; "
            "open('f.ulg', 'wb').write(lzma.decompress(s.BUNDLED.read_bytes()))"
        )
        try:
            python = artifacts.environment(out / "bare")
            artifacts.install(python, wheel)
            command = python.with_name("logreel")
            artifacts.run(out, python, "-c", unpack)
            for words in (("--version",), ("formats",), ("info", "f.ulg")):
                artifacts.run(out, command, *words)
        except artifacts.BuildError as error:
            yield f"in a bare environment: {error}"


def differing_files(root: Path, packed: set[str]) -> Found:
    """Yield the files of the package that git has and a wheel lacks, and those that only the wheel has."""
    names = {name.removeprefix("src/") for name in git(root, "ls-files", "src/logreel").splitlines()}
    # Cython's sources are in the wheel as compiled modules, too; both are wanted.
    for inside in sorted(names - packed):
        if Path(inside).suffix in {".py", ".pyi", ".js", ".css", ".html", ".txt", ".xz"}:
            yield f"the wheel lacks {inside}"
    for inside in sorted(packed - names):
        if ".dist-info/" not in inside and Path(inside).suffix not in {".so", ".pyd"}:
            yield f"the wheel has {inside}, which is no file of the package"


@functools.cache
def built(root: Path) -> tuple[Path, Path]:
    """Return the sdist and the wheel made from it, built at the first call; raises BuildError."""
    folder = tempfile.mkdtemp(prefix="logreel-release-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sdist = artifacts.build_sdist(root, Path(folder))
    return sdist, artifacts.build_wheel(sdist, Path(folder))


def check_sdist(root: Path) -> Found:
    """Build a source distribution, a wheel from it with gcc alone, and look for what a build needs."""
    try:
        archive, _ = built(root)
    except artifacts.BuildError as error:
        yield f"the sdist does not build: {error}"
        return
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    kernels = set(git(root, "ls-files", "src/logreel/kernels").splitlines())
    for name in sorted({"pyproject.toml", "setup.py", "README.md", "LICENSE", *kernels} - names):
        yield f"the sdist lacks {name}"
    for name in sorted(names):
        if name.startswith("tests/") or Path(name).suffix in {".so", ".pyc"}:
            yield f"the sdist has {name}"


#: Points of the list, in its order; the last ones take minutes.
POINTS: dict[str, Callable[[Path], Found]] = {
    "version": check_version,
    "changelog": check_changelog,
    "clean tree": check_tree,
    "generated files": check_generated,
    "pictures and links": check_links,
    "index of pages": check_index,
    "metadata": check_metadata,
    "sdist": check_sdist,
    "wheel": check_wheel,
}
SLOW = {"sdist", "wheel"}


def git(root: Path, *words: str) -> str:
    """Return what git prints; empty where there is no repository."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout


def main(words: list[str]) -> int:
    """Walk the points, and return the exit code."""
    if words[:1] == ["--tag"]:
        found = list(check_tag(ROOT, words[1] if len(words) > 1 else ""))
        print("\n".join(found) or "ok", flush=True)
        return 1 if found else 0
    points = {name: check for name, check in POINTS.items() if "--quick" not in words or name not in SLOW}
    open_points = 0
    for name, check in points.items():
        found = list(check(ROOT))
        verdict = "ok" if not found else "to do" if all(isinstance(one, ToDo) for one in found) else "FAILED"
        open_points += verdict != "ok"
        print(f"{verdict:7}{name}", flush=True)
        for text in found[:20]:
            print(f"         {text}")
        if len(found) > 20:
            print(f"         … {len(found) - 20} more")
    print(f"{len(points) - open_points} of {len(points)} points are ok; the list is in docs/release.md")
    return 1 if open_points else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
