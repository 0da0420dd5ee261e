"""Build the documentation site: ``python tools/build_site.py [--out FOLDER] [--name VERSION]``; ``make site`` calls it.

The pages are docs/ as it is. Added are a page for each verb, made from its options, and one for each public name, made
from its docstring. The order of the pages is that of docs/README.md. Each version has a folder of its own in FOLDER, so
that building one leaves the others; ``versions.js`` beside them lists them and their pages.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote

import click

import logreel
import logreel.plugin
from logreel.cli.app import logreel as group
from logreel.cli.help import VERBS, WithExamples

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Modules with public names; that of CARLA is an attribute, which the format adds.
MODULES = {"logreel": logreel, "logreel.plugin": logreel.plugin, "logreel.carla": logreel.carla}
SETTINGS = Path(__file__).resolve().parent / "sphinx"
#: A fenced block, which is left as it is, or a link.
LINK = re.compile(
    r"(?P<fence>^(?P<mark> *(?:`{3,}|~{3,})).*?^(?P=mark)`*~* *$)|\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)
#: What steers the tests of a page, and marks what tools write.
COMMENT = re.compile(r"^<!--.*?-->\n", re.DOTALL | re.MULTILINE)
#: Pages outside docs/ that the contents name.
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
#: Classes whose members are those of Python itself.
PLAIN_BASES = "tuple, Exception, Mapping, Sequence, Enum, int, str, dict, object"
#: A link to a page, with its words.
PAGE_LINK = re.compile(r"\[([^\]]*)\]\(([^)#]*\.md)\)")


class Entry(NamedTuple):
    """A page in the contents: its name in the site, without suffix, and its title; empty: its own heading."""

    page: str
    title: str = ""


def staged(path: Path) -> Path:
    """Return where a file of the repository is in the site."""
    if path.is_relative_to(DOCS):
        inner = path.relative_to(DOCS)
        if inner == Path("README.md"):
            return Path("pages.md")
        return inner.with_name("index.md") if inner.name == "README.md" else inner
    return Path("project") / path.relative_to(ROOT)


def page_of(path: Path) -> str:
    """Return the name in the site of a page of the repository."""
    return staged(path).with_suffix("").as_posix()


def local_target(page: Path, link: str) -> tuple[Path, str] | None:
    """Return the file or folder that a link of a page leads to, and its anchor; None for an address."""
    target, _, anchor = link.partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return None
    path = (page.parent / unquote(target)).resolve()
    if not path.exists() or not path.is_relative_to(ROOT):
        raise ValueError(f"{page.relative_to(ROOT)}: the link {link!r} leads nowhere")
    return path, f"#{anchor}" if anchor else ""


class Contents(NamedTuple):
    """The order of the pages: entries by caption, and pages below a page."""

    parts: dict[str, list[Entry]]
    below: dict[str, list[Entry]]


def contents() -> Contents:
    """Return the order of the pages: that of the links in docs/README.md and in the indexes of its folders."""
    parts: dict[str, list[Entry]] = {}
    below: dict[str, list[Entry]] = {}
    # The first page is above all of them.
    seen = {DOCS / "index.md"}
    caption = ""
    for line in (DOCS / "README.md").read_text("utf-8").splitlines():
        if head := re.match(r"## (.*)|\| (to .*?) \| \|$", line):
            caption = head[1] or head[2].capitalize()
        for words, link in PAGE_LINK.findall(line):
            path = (DOCS / link).resolve()
            if path in seen or not path.is_relative_to(DOCS):
                continue
            seen.add(path)
            entry = Entry(page_of(path), words[:1].upper() + words[1:])
            if path.parent.name == "coming-from":
                below.setdefault("coming-from/index", []).append(entry)
                entry = Entry("coming-from/index", "Coming from another tool")
            if entry not in parts.setdefault(caption, []):
                parts[caption].append(entry)
    for folder in (DOCS / "formats", DOCS / "decisions"):
        linked = PAGE_LINK.findall((folder / "README.md").read_text("utf-8"))
        inner = dict.fromkeys((folder / link).resolve() for _, link in linked)
        below[page_of(folder / "README.md")] = [
            Entry(page_of(path)) for path in inner if path.parent == folder
        ]
    names = [Entry(page_of(ROOT / name)) for name in PROJECT]
    parts["Project"] = [Entry(page_of(DOCS / "README.md"), "All pages by kind"), *names]
    return Contents(parts, below)


def toctree(entries: list[Entry], caption: str = "", hidden: bool = True) -> str:
    """Return a list of pages for Sphinx."""
    lines = ["", "```{toctree}", *([":hidden:"] if hidden else []), ":maxdepth: 1"]
    lines += [f":caption: {caption}"] * bool(caption) + [""]
    lines += [f"{title} </{page}>" if title else f"/{page}" for page, title in entries]
    return "\n".join([*lines, "```", ""])


class Stage:
    """Writes the pages of the site as Sphinx reads them, into an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: list[Path] = []
        self._known: set[Path] = set()

    def write(self, page: str, text: str) -> None:
        """Write a page of the site."""
        path = self.folder / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def need(self, path: Path) -> None:
        """Take a file or folder of the repository, and all that it links, into the site."""
        if path not in self._known:
            self._known.add(path)
            self._waiting.append(path)

    def take(self) -> None:
        """Write what is needed."""
        while self._waiting:
            path = self._waiting.pop()
            out = self.folder / staged(path)
            out.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                self._write_folder(path)
            elif path.suffix == ".md":
                out.write_text(self._moved(path), "utf-8")
            else:
                shutil.copyfile(path, out)

    def _write_folder(self, path: Path) -> None:
        names = sorted(inner.name for inner in path.iterdir() if inner.is_file())
        page = (staged(path) / "index").as_posix()
        title = path.relative_to(ROOT).as_posix()
        listed = "".join(f"* [{name}]({name})\n" for name in names)
        self.write(page, f"---\norphan: true\n---\n\n# {title}\n\n{listed}")
        for name in names:
            self.need(path / name)

    def _moved(self, path: Path) -> str:
        """Return the text of a page with its links as they are in the site."""

        def moved(found: re.Match[str]) -> str:
            target = found["target"] and local_target(path, found["target"])
            if not target:
                return found[0]
            self.need(target[0])
            place = staged(target[0]) / "index.md" if target[0].is_dir() else staged(target[0])
            return f"]({os.path.relpath(place, staged(path).parent)}{target[1]})"

        text = path.read_text("utf-8")
        if text.startswith("---\n"):
            # Members for programs, of a skill.
            text = text.split("---\n", 2)[2].lstrip()
        return LINK.sub(moved, COMMENT.sub("", text))

    def extend(self, page: str, text: str) -> None:
        """Add to the end of a page."""
        path = self.folder / f"{page}.md"
        path.write_text(path.read_text("utf-8") + text, "utf-8")


def plain(text: str) -> str:
    """Return plain text as Markdown that shows it as it is."""
    return re.sub(r"([\\*_<>\[\]`|#{}$])", r"\\\1", " ".join(text.split()))


def heading_anchors(page: Path) -> dict[str, str]:
    """Return the anchors of headings of the second level by the first name in their code, or by their text."""
    out: dict[str, str] = {}
    for title in re.findall(r"^## (.*)$", page.read_text("utf-8"), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        for code in re.findall(r"`([^`]*)`", title) or [title]:
            out.setdefault(code.partition("(")[0].removeprefix("logreel."), slug)
    return out


def commands() -> Iterator[tuple[click.Command, click.Context]]:
    """Yield every verb with its context, in the order of the help; those of single formats last."""
    context = click.Context(group, info_name="logreel", **group.context_settings)
    ordered = [verb for verbs in VERBS.values() for verb in verbs]
    ordered += [name for name in group.list_commands(context) if name not in ordered]
    for name in ordered:
        yield from _with_inner(group.get_command(context, name), name, context)


def _with_inner(
    command: click.Command | None, name: str, parent: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    if command is None:
        raise ValueError(f"there is no verb {name}")
    context = click.Context(command, info_name=name, parent=parent)
    yield command, context
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _with_inner(command.get_command(context, inner), inner, context)


def verb_page(command: click.Command, context: click.Context, anchors: dict[str, str]) -> str:
    """Return the page of a verb: usage, help, options and examples, as the command has them."""
    path = context.command_path
    name = path.removeprefix("logreel ")
    usage = f"{path} {' '.join(command.collect_usage_pieces(context))}"
    lines = [f"# {name}", "", "```text", usage, "```", ""]
    for text in re.split(r"\n\s*\n", (command.help or "").strip()):
        lines += [plain(text), ""]
    if isinstance(command, click.Group):
        lines += ["## Verbs", ""]
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            link = f"[`{name} {inner}`]({verb_name(f'{name} {inner}')}.md)"
            lines += [link, f": {plain(found.get_short_help_str(200))}", ""]
    # Without --help, which every verb has.
    options = [option for option in command.params if isinstance(option, click.Option)]
    lines += ["## Options", ""] if options else []
    for record in filter(None, (option.get_help_record(context) for option in options)):
        lines += [f"`{record[0]}`", f": {plain(record[1]) or '&nbsp;'}", ""]
    examples = command.examples if isinstance(command, WithExamples) else []
    if examples:
        lines += ["## Examples", ""]
        for line, text in examples:
            lines += [plain(text[:1].upper() + text[1:]) + ":", "", "```sh", line, "```", ""]
    if name in anchors:
        lines += [f"What it prints and how it decides is in [Command line](../cli.md#{anchors[name]}).", ""]
    return "\n".join(lines)


def verb_name(name: str) -> str:
    """Return the file name of the page of a verb."""
    return name.replace(" ", "-")


def write_verbs(stage: Stage) -> None:
    """Write a page for each verb, below that of the command line."""
    anchors = heading_anchors(DOCS / "cli.md")
    entries: list[Entry] = []
    for command, context in commands():
        name = context.command_path.removeprefix("logreel ")
        page = f"verbs/{verb_name(name)}"
        stage.write(page, verb_page(command, context, anchors))
        entries.append(Entry(page, name))
    stage.extend("cli", toctree(entries))


def public_names() -> dict[str, dict[str, str]]:
    """Return the public names by the title of their list, each with the module that offers it."""
    errors, classes, functions, authors = {}, {}, {}, {}
    for name in logreel.__all__:
        thing = getattr(logreel, name)
        if isinstance(thing, type):
            is_error = issubclass(thing, Exception)
            (errors if is_error else classes)[name] = "logreel"
        elif not isinstance(thing, str):
            functions[name] = "logreel"
    for name in logreel.plugin.__all__:
        if name not in logreel.__all__:
            authors[name] = "logreel.plugin"
    carla = dict.fromkeys(MODULES["logreel.carla"].__all__, "logreel.carla")
    return {
        "Functions": functions,
        "Classes": classes,
        "Errors": errors,
        "CARLA recordings": carla,
        "For authors of plug-ins": authors,
    }


def first_line(thing: Any) -> str:
    """Return the first paragraph of a docstring, up to its first full stop or semicolon, as Markdown."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    text = re.split(r"(?<=[a-z)`*])[.;:](?: |$)", text)[0]
    return re.sub(r"``([^`]*)``", r"`\1`", text).replace("|", r"\|")


def name_page(name: str, module: str, way: str, anchors: dict[str, str]) -> str:
    """Return the page of a public name; Sphinx fills it from the docstrings.

    *way* leads to the list that it is in: each page shows the contents, and 190 names in them would take long.
    """
    thing = getattr(MODULES[module], name)
    if isinstance(thing, ModuleType):
        directive = [f".. automodule:: {thing.__name__}", "   :members:"]
    elif isinstance(thing, type):
        directive = [
            f".. autoclass:: {module}.{name}",
            "   :members:",
            f"   :inherited-members: {PLAIN_BASES}",
        ]
    else:
        directive = [f".. auto{'function' if callable(thing) else 'data'}:: {module}.{name}"]
    head = ["---", "orphan: true", "---", "", way, "", f"# {name}", ""]
    lines = [*head, "```{eval-rst}", *directive, "```", ""]
    if name in anchors:
        lines += [f"With examples in [Python API](../api.md#{anchors[name]}).", ""]
    return "\n".join(lines)


def write_names(stage: Stage) -> None:
    """Write a page for each public name, and the lists that lead to them, below the page of the API."""
    anchors = heading_anchors(DOCS / "api.md")
    lists = []
    for title, names in public_names().items():
        page = "reference/" + title.lower().replace(" ", "-")
        rows = []
        for name in sorted(names, key=str.lower):
            inner = "reference/" + page_of_name(name, names[name])
            way = f"[Python API](../api.md) / [{title}](/{page}.md)"
            stage.write(inner, name_page(name, names[name], way, anchors if names[name] == "logreel" else {}))
            rows.append(f"| [`{name}`](/{inner}.md) | {first_line(getattr(MODULES[names[name]], name))} |")
        stage.write(page, "\n".join([f"# {title}", "", "| | |", "|---|---|", *rows, ""]))
        lists.append(Entry(page, title))
    stage.extend("api", toctree(lists))


def page_of_name(name: str, module: str) -> str:
    """Return the file name of the page of a name; names that differ only in case need different ones everywhere."""
    prefix = module.removeprefix("logreel").removeprefix(".")
    thing = getattr(MODULES[module], name)
    if isinstance(thing, ModuleType):
        name += "-module"
    elif not isinstance(thing, type):
        name += "-function" if callable(thing) else "-value"
    return "-".join(filter(None, [prefix, name]))


def write_pages(folder: Path) -> None:
    """Write all pages of the site into *folder*, which must not exist."""
    folder.mkdir(parents=True)
    stage = Stage(folder)
    for path in [*DOCS.rglob("*.md"), *(ROOT / name for name in PROJECT)]:
        stage.need(path)
    stage.take()
    order = contents()
    stage.write(
        "coming-from/index", "# Coming from another tool\n\nEach habit, and what does the same here.\n"
    )
    for page, entries in order.below.items():
        stage.extend(page, toctree(entries, hidden=page != "coming-from/index"))
    write_verbs(stage)
    write_names(stage)
    stage.extend("index", "".join(toctree(entries, caption) for caption, entries in order.parts.items()))
    named = {entry.page for entries in (*order.parts.values(), *order.below.values()) for entry in entries}
    for path in sorted((folder / "project").rglob("*.md")):
        page = path.relative_to(folder).with_suffix("").as_posix()
        if page not in named:
            path.write_text("---\norphan: true\n---\n\n" + path.read_text("utf-8"), "utf-8")


class _Requests(HTMLParser):
    """Collects what a browser requests when it shows a page; links that people follow are not among it."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.addresses += [values[name] for name in ("src", "srcset", "poster", "data") if name in values]
        if tag == "link" and values.get("rel") not in {"canonical", "alternate"}:
            self.addresses.append(values.get("href", ""))
        self.addresses += re.findall(r"url\(([^)]*)\)", values.get("style", ""))


def requests_elsewhere(folder: Path) -> list[str]:
    """Return what pages, styles and scripts of a built site would request from other hosts, each with its file."""
    out = []
    elsewhere = re.compile(r"^['\"]?(https?:)?//")
    for path in sorted(folder.rglob("*")):
        addresses: list[str] = []
        if path.suffix == ".html":
            parser = _Requests()
            parser.feed(path.read_text("utf-8"))
            addresses = parser.addresses
        elif path.suffix == ".css":
            text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
            addresses = re.findall(r"url\(([^)]*)\)", text) + re.findall(r"@import\s+([^;]*)", text)
        elif path.suffix == ".js":
            addresses = re.findall(r"(?:fetch|import|importScripts)\(\s*([^)]*)\)", path.read_text("utf-8"))
        out += [
            f"{path.relative_to(folder)}: {address}"
            for address in addresses
            if elsewhere.match(address.strip())
        ]
    return out


def list_versions(folder: Path, newest: str) -> None:
    """Write the list of the versions in *folder* with their pages, and its first page, which leads to *newest*."""

    def order(name: str) -> list[tuple[int, str]]:
        parts = [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.+-]", name)]
        return [*parts, (0, "")]  # 1.0.dev2 comes before 1.0, and that before 1.0.1

    names = sorted((path.parent.name for path in folder.glob("*/index.html")), key=order, reverse=True)
    pages = {
        name: sorted(page.relative_to(folder / name).as_posix() for page in (folder / name).rglob("*.html"))
        for name in names
    }
    (folder / "versions.js").write_text(f"window.LOGREEL_VERSIONS = {json.dumps(pages)};\n", "utf-8")
    (folder / "index.html").write_text(
        '<!doctype html>\n<meta charset="utf-8">\n<title>logreel</title>\n'
        f'<meta http-equiv="refresh" content="0; url={newest}/index.html">\n'
        f'<a href="{newest}/index.html">logreel</a>\n',
        "utf-8",
    )


def build(out: Path, name: str, work: Path) -> list[str]:
    """Build the site of this version into ``out/name``; return what is wrong."""
    shutil.rmtree(work, ignore_errors=True)
    write_pages(work)
    built = work.with_name(work.name + "-html")
    shutil.rmtree(built, ignore_errors=True)
    call = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto"]
    values = {"version": name, "release": name, "html_title": f"logreel {name}"}
    call += ["-c", str(SETTINGS), *(f"-D{key}={value}" for key, value in values.items())]
    done = subprocess.run([*call, str(work), str(built)], check=False)
    if done.returncode:
        return [
            f"sphinx has ended with {done.returncode}: see its warnings above; it has read the pages in {work}"
        ]
    wrong = [f"requested from another host: {line}" for line in requests_elsewhere(built)]
    if not wrong:
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        shutil.rmtree(out / name, ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        shutil.move(built, out / name)
        list_versions(out, name)
    return wrong


def main(words: list[str]) -> int:
    """Build the site, and return the exit code."""
    parser = argparse.ArgumentParser(description="build the documentation site")
    parser.add_argument("--out", type=Path, default=ROOT / "build/site", help="folder of all versions")
    parser.add_argument(
        "--name", default=logreel.__version__, help="name of this version, also of its folder"
    )
    given = parser.parse_args(words)
    if not re.fullmatch(r"[\w][\w.+-]*", given.name):
        parser.error("a version is a name of letters, digits, dots and dashes")
    wrong = build(given.out, given.name, ROOT / "build/site-pages")
    sys.stderr.writelines(f"make site: {line}\n" for line in wrong)
    if not wrong:
        sys.stdout.write(f"wrote {given.out / given.name / 'index.html'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
