"""The group of verbs; each verb's module is loaded when the verb is used."""

from __future__ import annotations

import importlib
import os

import rich_click as click

from logreel._version import __version__

#: Verbs by what they are for, in the order of the help; each is a module of this folder with a command of
#: its name.
VERBS = {
    "Look": ("info", "cat", "schema", "params", "text", "attachments", "stats", "check", "diff", "sql"),
    "Play": ("play",),
    "Make": ("convert", "record", "slice", "merge", "split", "sort", "recover", "index"),
    "Offer": ("serve",),
    "Help": ("demo", "formats", "completion"),
}


#: Names under which other programs have a verb.
ALIASES = {
    "export": "convert", "save": "convert", "to": "convert",
    "ls": "info", "list": "info", "show": "info", "inspect": "info", "describe": "info", "summary": "info",
    "dump": "cat", "echo": "cat", "print": "cat", "head": "cat", "tail": "cat", "messages": "cat", "read": "cat",
    "filter": "slice", "cut": "slice", "trim": "slice", "crop": "slice", "extract": "slice", "compress": "slice",
    "join": "merge", "concat": "merge", "concatenate": "merge", "combine": "merge",
    "reindex": "recover", "repair": "recover", "fix": "recover", "doctor": "recover", "rescue": "recover",
    "verify": "check", "validate": "check", "lint": "check", "compare": "diff",
    "query": "sql", "select": "sql", "parameters": "params", "logs": "text",
    "topics": "info", "channels": "info", "types": "schema", "definition": "schema", "fields": "schema",
    "replay": "play", "view": "play", "publish": "play", "import": "record", "create": "record", "write": "record",
    "server": "serve", "http": "serve", "rate": "stats", "hz": "stats", "statistics": "stats",
}  # fmt: skip


class Verbs(click.RichGroup):
    """Commands that are imported one by one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that *args* begin with; raises UsageError that names the one that is meant, where that is clear."""
        name = args[0]
        if name[:1] != "-" and self.get_command(ctx, name) is None:
            ctx.fail(f"no such command {name!r}{self._meant(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str:
        from difflib import get_close_matches

        if os.path.exists(name):
            return f": what to do with that file comes first, as in 'logreel info {name}'"
        known = self.list_commands(ctx)
        near = [ALIASES[name.lower()]] if name.lower() in ALIASES else get_close_matches(name.lower(), known)
        return f"; did you mean {' or '.join(repr(one) for one in near)}?" if near else ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the help, then the formats that have commands of their own."""
        from logreel.cli.special import groups

        return [*(verb for verbs in VERBS.values() for verb in verbs), *groups()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of one verb."""
        if not any(name in verbs for verbs in VERBS.values()):
            from logreel.cli.special import group_of

            return group_of(name)
        command: click.Command = getattr(importlib.import_module(f"logreel.cli.{name}"), name)
        return command


#: Not the decorator rich_config, which would load rich for every verb.
HELP = {
    "command_groups": {"logreel": [{"name": name, "commands": list(verbs)} for name, verbs in VERBS.items()]},
    "max_width": 110,
    "text_paragraph_linebreaks": "\n\n",
    "commands_panel_title": "Of one format",
}


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "rich_help_config": HELP})
@click.version_option(__version__, prog_name="logreel", message="%(prog)s %(version)s")
def logreel() -> None:
    """Open, look into and convert the logs of robots, drones and vehicles.

    FILE is a log of any known format, or - for standard input. Data goes to stdout, everything else to
    stderr. Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 finished but data was lost or skipped, 4 check
    found something or diff differences, 5 no known format.
    """
