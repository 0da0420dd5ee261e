"""``logreel definitions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.schemas.catalogue import Entry

ADD, LIST, FIND = "add", "list", "find"


@verb(
    examples={
        "logreel definitions list 'sensor_msgs/*'": "known types and their versions",
        "logreel definitions find std_msgs/Header": "the text of a type",
    },
)
@click.argument("what", type=click.Choice([ADD, LIST, FIND]), metavar="add|list|find")
@click.argument("values", metavar="[PATH…|PATTERN…|NAME…|MD5…]", nargs=-1, type=arguments.FILE)
@common.decrypt
@paths.text_output
@common.as_json
def definitions(what: str, values: tuple[str, ...], as_json: bool) -> int:
    """Show the known message definitions, by which logs without definitions are read, and add to them.

    "definitions list [PATTERN…]" lists types and versions, "definitions find NAME…" shows the text of a type or of an
    MD5 checksum, "definitions add PATH…" stores .msg files, folders of packages, or the definitions in logs.
    """
    from logreel.errors import UsageError
    from logreel.ops.definitions import find
    from logreel.ops.definitions import list as entries

    if what == ADD:
        return _add(values, as_json)
    if what == FIND and not values:
        raise UsageError("say what to find: a type such as std_msgs/Header, or an MD5 checksum")
    several = map(find, values) if what == FIND else map(entries, values or ("*",))
    chosen = list(dict.fromkeys(one for some in several for one in some))
    if as_json:
        draw.echo_json({"definitions": [one.as_dict(text=what == FIND) for one in chosen]})
    elif what == LIST:
        rows = [(one.name, one.version, one.source) for one in chosen]
        draw.table(("type", "version", "source"), rows)
    else:
        for number, one in enumerate(chosen):
            if number:
                draw.echo()
            _show(one)
    if what == LIST and not chosen:
        draw.say(f"no known type is called {' or '.join(values)}")
    return 0


def _add(values: tuple[str, ...], as_json: bool) -> int:
    from logreel.cli.exits import LOST
    from logreel.ops.definitions import add
    from logreel.schemas.catalogue import data_folder

    context = click.get_current_context(silent=True)
    # text_output keeps it, for the file of -o.
    done = add(*values, decrypt=context is not None and context.params["decrypt"])
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        for one in done.added:
            draw.echo(f"{one.name}  {one.version}")
        known = f", {len(done.known)} known already" if done.known else ""
        plural = "" if len(done.added) == 1 else "s"
        draw.say(f"added {len(done.added)} definition{plural}{known}; they are in {data_folder()}")
    for text in done.problems:
        draw.say(text)
    return LOST if done.problems else 0


def _show(one: Entry) -> None:
    """Print one definition for people."""
    draw.echo(f"{one.name}  ({one.language}, {one.version})")
    draw.echo(f"  source: {one.source}")
    if one.path is not None:
        draw.echo(f"  file: {one.path}")
    for line in one.text.splitlines():
        draw.echo(f"  | {line}")
