"""Types of arguments, which tell the shell what can stand there: files, folders, topics of the log on the line."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Name(click.ParamType):  # type: ignore[type-arg]
    """Text as it was written; the shell completes names of files or folders.

    kind  ``file`` or ``dir``
    """

    def __init__(self, kind: str) -> None:
        self.name = self.kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """What makes the shell look for names itself."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type=self.kind)]


class Topic(click.ParamType):  # type: ignore[type-arg]
    """A channel or pattern, as it was written; the shell completes the topics of the logs on the line."""

    name = "topic"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The topics that begin like this, with their types; reserved ones only where asked for."""
        from click.shell_completion import CompletionItem

        found: dict[str, str] = {}
        for file in _files(ctx):
            found |= {topic: kind for topic, kind in _topics(file) if topic not in found}
        return [
            CompletionItem(topic, help=kind)
            for topic, kind in found.items()
            if topic.startswith(incomplete) and (topic[:1] != "~" or incomplete[:1] == "~")
        ]


class TopicOrField(Topic):
    """A channel or fields of one; the shell completes topics, then the fields behind ``topic.`` or ``topic:``."""

    name = "topic-or-field"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the topics that begin like *incomplete*; else ``topic.field`` or ``topic:field,field``."""
        from click.shell_completion import CompletionItem

        if found := super().shell_complete(ctx, param, incomplete):
            return found
        words = dict.fromkeys(word for file in _files(ctx) for word in _fields(file, incomplete))
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _files(ctx: click.Context) -> list[str]:
    """The logs on the line; never standard input, which the person types into."""
    # click reads no argument of a line that ends in an option without its value: it gets one here.
    words: list[str] = ctx.find_root().obj[len(ctx.command_path.split()) - 1 :]
    params = ctx.params
    if words and words[-1][:1] == "-":
        params = ctx.command.make_context(None, [*words, "x"], ctx.parent, resilient_parsing=True).params
    given = (params.get(name) for name in ("file", "files", "a", "b"))
    named = [name for one in given if one for name in ([one] if isinstance(one, str) else one)]
    return [name for name in named if name != "-"]


def _topics(file: str) -> list[tuple[str, str]]:
    from logreel.registry.open import open_log

    # Whatever is wrong with a file is told when the line is run, not while it is typed.
    with contextlib.suppress(Exception), open_log(file) as log:
        return [(topic, ch.schema.name) for topic, ch in log.channels.items()]
    return []


def _fields(file: str, incomplete: str) -> list[str]:
    """Return *incomplete* with each field of the topic that it begins with, in place of what follows the topic."""
    from logreel.registry.open import open_log

    with contextlib.suppress(Exception), open_log(file) as log:
        for at in range(len(incomplete) - 1, 0, -1):
            if incomplete[at] in ".:" and incomplete[:at] in log:
                given = incomplete[at + 1 :].split(",")[:-1] if incomplete[at] == ":" else []
                begun = incomplete[: at + 1] + "".join(f"{field}," for field in given)
                return [begun + field for field in log[incomplete[:at]].fields if field not in given]
    return []


FILE, FOLDER, TOPIC, TOPIC_OR_FIELD = Name("file"), Name("dir"), Topic(), TopicOrField()
