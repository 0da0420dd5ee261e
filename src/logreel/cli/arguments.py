"""Parameter types with shell completion: files, folders, and topics and fields of the logs on the line."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import rich_click as click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from click.shell_completion import CompletionItem


class Name(click.ParamType):  # type: ignore[type-arg]
    """Unchanged text, completed by the shell with names of files or folders.

    kind  ``file`` or ``dir``
    """

    def __init__(self, kind: str) -> None:
        self.name = self.kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the item that makes the shell complete names of files or folders itself."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.kind)]


class FileOrParameter(Name):
    """Unchanged text, completed with names of parameters of the logs on the line, or else with names of files."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the parameters that start with *incomplete*; if there are none, the item for names of files."""
        from click.shell_completion import CompletionItem

        names = (
            dict.fromkeys(name for file in _files(ctx) for name in _parameters(file)) if incomplete else ()
        )
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return found or super().shell_complete(ctx, param, incomplete)


class Topic(click.ParamType):  # type: ignore[type-arg]
    """A channel, pattern or condition as unchanged text, completed from the logs on the line.

    Completed with topics and their types, reserved ones only after ``~``; if no topic starts like this, with
    conditions ``key=value``.
    """

    name = "topic"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*; if there are none, the conditions."""
        files = _files(ctx)
        return _topic_items(files, incomplete) or _word_items(files, incomplete, _conditions)


class TopicOrField(Topic):
    """As Topic, and completed with fields after ``topic.``, as ``topic.field`` or ``topic:field,field``."""

    name = "topic-or-field"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*; if there are none, the fields, or else the conditions."""
        files = _files(ctx)
        found = _topic_items(files, incomplete) or _word_items(files, incomplete, _fields)
        return found or _word_items(files, incomplete, _conditions)


def _topic_items(files: list[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found: dict[str, str] = {}
    for file in files:
        found |= {topic: kind for topic, kind in _topics(file) if topic not in found}
    return [
        CompletionItem(topic, help=kind)
        for topic, kind in found.items()
        if topic.startswith(incomplete) and (topic[:1] != "~" or incomplete[:1] == "~")
    ]


def _word_items(
    files: list[str], incomplete: str, words: Callable[[str, str], list[str]]
) -> list[CompletionItem]:
    """Return what *words* finds in each file for *incomplete*, without repeats."""
    from click.shell_completion import CompletionItem

    found = dict.fromkeys(word for file in files for word in words(file, incomplete))
    return [CompletionItem(word) for word in found if word.startswith(incomplete)]


def _files(ctx: click.Context) -> list[str]:
    """Return the log files on the line, without ``-``: standard input is the keyboard."""
    # click parses no arguments if the line ends in an option without its value, so add a value.
    words: list[str] = ctx.find_root().obj[len(ctx.command_path.split()) - 1 :]
    params = ctx.params
    if words and words[-1][:1] == "-":
        params = ctx.command.make_context(None, [*words, "x"], ctx.parent, resilient_parsing=True).params
    return [name for name in logs_among(params) if name != "-"]


def logs_among(parameters: Mapping[str, Any]) -> list[str]:
    """Return the words on the command line that name logs, from the parameters of a verb."""
    words = [parameters.get(name) for name in ("file", "files", "paths")]
    words.append(getattr(parameters.get("logs"), "names", None))
    return [name for given in words if given for name in ([given] if isinstance(given, str) else given)]


def _topics(file: str) -> list[tuple[str, str]]:
    """Return topics and schema names of the log at *file*; nothing if it cannot be opened."""
    from logreel.registry.open import open_log

    # Errors of the file are reported when the command runs, not while it is typed.
    with contextlib.suppress(Exception), open_log(file) as log:
        return [(topic, ch.schema.name) for topic, ch in log.channels.items()]
    return []


def _parameters(file: str) -> list[str]:
    """Return the parameters of the log at *file*; nothing if it cannot be opened."""
    from logreel.registry.open import open_log

    with contextlib.suppress(Exception), open_log(file) as log:
        return list(log.parameters)
    return []


def _fields(file: str, incomplete: str) -> list[str]:
    """Return *incomplete* with its last field replaced by each field of its topic in the log at *file*."""
    from logreel.registry.open import open_log

    with contextlib.suppress(Exception), open_log(file) as log:
        for at in range(len(incomplete) - 1, 0, -1):
            if incomplete[at] in ".:" and incomplete[:at] in log:
                given = incomplete[at + 1 :].split(",")[:-1] if incomplete[at] == ":" else []
                begun = incomplete[: at + 1] + "".join(f"{field}," for field in given)
                return [begun + field for field in log[incomplete[:at]].fields if field not in given]
    return []


def _conditions(file: str, incomplete: str) -> list[str]:
    """Return *incomplete* with its last condition replaced by each ``key=value`` that holds in the log at *file*."""
    from logreel.registry.open import open_log

    before, comma, last = incomplete.rpartition(",")
    key = last.partition("=")[0]
    if not key:
        return []
    with contextlib.suppress(Exception), open_log(file) as log:
        return [
            f"{before}{comma}{name}={value}"
            for ch in log.match(None)
            for name in ch.facts
            # The long forms of a key are offered only once they are typed.
            if name.startswith(key) and set(":.") & {*name} <= {*key}
            for value in ch.facts[name]
        ]
    return []


class FileOrTopic(Topic):
    """Unchanged text, completed with topics of the logs on the line, or else with names of files."""

    name = "file-or-topic"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*; if there are none, the item for names of files."""
        found = _topic_items(_files(ctx), incomplete)
        return found or FILE.shell_complete(ctx, param, incomplete)


class FileOrField(FileOrTopic):
    """As FileOrTopic, and completed with fields."""

    name = "file-or-field"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that start with *incomplete*, else the fields; if there are none, names of files."""
        files = _files(ctx)
        found = _topic_items(files, incomplete) or _word_items(files, incomplete, _fields)
        return found or FILE.shell_complete(ctx, param, incomplete)


FILE, FOLDER, TOPIC, TOPIC_OR_FIELD = Name("file"), Name("dir"), Topic(), TopicOrField()
FILE_OR_PARAMETER, FILE_OR_TOPIC, FILE_OR_FIELD = FileOrParameter("file"), FileOrTopic(), FileOrField()
