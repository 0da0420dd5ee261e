"""The command group ``logreel``, which imports the module of a verb when the verb is used."""

from __future__ import annotations

import importlib
import os

import click

from logreel._version import __version__
from logreel.cli.help import VERBS, GroupWithExamples

#: Verbs by the module of this folder that has them; a module is imported when one of its verbs is used.
_MODULES = {
    "read": ("info", "summary", "cat", "text"),
    "contents": ("schema", "params", "attachments", "notes", "stats", "du"),
    "check": ("check", "health", "diff"),
    "verdicts": ("ci", "compare"),
    "query": ("sql", "tf"),
    "show": ("plot", "report", "view", "serve", "demo"),
    "play": ("play",),
    "convert": ("convert", "geotag", "verify"),
    "record": ("record",),
    "rewrite": ("slice", "merge", "split", "sort", "edit", "recover", "migrate", "add", "index"),
    "fleet": ("fleet", "dataset"),
    "formats": ("formats", "definitions", "new-format"),
    "completion": ("completion",),
}

#: Verbs of other programs, with the verb here that does the same; two verbs are joined by " or ".
ALIASES = {
    "export": "convert", "save": "convert", "to": "convert",
    "ls": "info", "list": "info", "show": "info", "inspect": "info", "describe": "info",
    "dump": "cat", "echo": "cat", "print": "cat", "head": "cat", "tail": "cat", "messages": "cat", "read": "cat",
    "filter": "slice", "cut": "slice", "trim": "slice", "crop": "slice", "extract": "slice", "compress": "slice",
    "join": "merge", "concat": "merge", "concatenate": "merge", "combine": "merge",
    "reindex": "recover", "repair": "recover", "fix": "recover or migrate", "doctor": "check or recover",
    "rescue": "recover",
    "validate": "check", "lint": "check",
    "query": "sql", "select": "sql", "parameters": "params", "logs": "text",
    "topics": "info", "channels": "info", "types": "schema", "definition": "schema", "fields": "schema",
    "replay": "play", "publish": "play", "import": "record", "create": "record", "write": "record",
    "server": "serve", "http": "serve", "rate": "stats", "hz": "stats", "statistics": "stats",
    "usage": "du", "size": "du", "viewer": "view", "browse": "view", "gui": "view",
    "frames": "tf", "transforms": "tf", "tf2": "tf", "view_frames": "tf", "urdf": "tf",
    "chart": "plot", "draw": "plot", "graph": "plot",
    "rename": "edit", "restamp": "edit", "redact": "edit", "anonymize": "edit", "anonymise": "edit",
    "modify": "edit", "change": "edit",
    "lerobot": "dataset", "train": "dataset", "episodes": "dataset",
    "grep": "text or cat", "find": "info", "search": "text or cat", "align": "convert", "resample": "convert",
    "images": "convert", "pictures": "convert", "video": "convert", "track": "convert", "clouds": "convert",
    "note": "notes", "annotate": "notes", "bookmark": "notes", "bookmarks": "notes", "comment": "notes",
    "attach": "add", "append": "record", "upgrade": "migrate", "update": "migrate",
}  # fmt: skip


class Verbs(GroupWithExamples):
    """Command group that imports each command at its first use."""

    purposes = VERBS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that *args* begin with; raises UsageError with a suggestion for an unknown verb."""
        name = args[0]
        if name[:1] != "-" and self.get_command(ctx, name) is None:
            ctx.fail(f"no such command {name!r}{self._suggestion(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _suggestion(self, ctx: click.Context, name: str) -> str:
        from difflib import get_close_matches

        if os.path.exists(name):
            return f": what to do with that file comes first, as in 'logreel info {name}'"
        known = self.list_commands(ctx)
        alias = ALIASES.get(name.lower(), "")
        near = alias.split(" or ") if alias else get_close_matches(name.lower(), known)
        return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs in the order of the help, then the formats with commands of their own."""
        from logreel.cli.formats import formats_with_commands

        return [*(verb for verbs in VERBS.values() for verb in verbs), *formats_with_commands()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of one verb, or the command group of one format."""
        module = next((module for module, verbs in _MODULES.items() if name in verbs), None)
        if module is None:
            from logreel.cli.formats import format_group

            return format_group(name)
        command: click.Command = getattr(
            importlib.import_module(f"logreel.cli.{module}"), name.replace("-", "_")
        )
        return command


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples={
        "logreel info flight.ulg": "what is in a log",
        "logreel cat --help": "the options of a verb, with examples",
    },
)
@click.version_option(__version__, prog_name="logreel", message="%(prog)s %(version)s")
def logreel() -> None:
    """Inspect, convert and edit logs of robots, drones and vehicles.

    FILE is a log of any known format, an address such as s3://bucket/key, or - for standard input. Data goes to
    stdout, messages to stderr. Exit codes: 0 success, 1 failure, 2 wrong usage, 3 finished, but data was lost or
    skipped, 4 check or ci has findings, diff or compare has differences, 5 unknown format.
    """
