"""``logreel view``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel view flight.ulg": "look at a log in the browser",
        "logreel view logs --port 8080 --no-browser": "print the address of a viewer for a folder",
    },
)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=arguments.FILE)
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening a browser.")
@click.option("-f", "--follow", is_flag=True, help="Show new messages of files that are still written.")
@click.option(
    "--layout", metavar="FILE", type=arguments.FILE, help="Begin with a layout that was saved in the page."
)
@click.option(
    "--tiles", metavar="FILE|URL", help="Map tiles: a PMTiles file, or an address with {z}, {x} and {y}."
)
@click.option(
    "--host",
    metavar="NAME",
    default="127.0.0.1",
    help="Address to listen at; others than this machine need --allow-host.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port to listen at; 0: any free port.",
)
@click.option(
    "--token",
    envvar="LOGREEL_TOKEN",
    metavar="TEXT",
    help="Access token instead of a random one; or set LOGREEL_TOKEN.",
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="Accept this further host name of the viewer."
)
@common.decrypt
@common.msgdef
def view(
    paths: tuple[str, ...],
    no_browser: bool,
    follow: bool,
    layout: str | None,
    tiles: str | None,
    host: str,
    port: int,
    token: str | None,
    allow_host: tuple[str, ...],
    decrypt: bool,
    msgdef: Definitions,
) -> int:
    """Show logs in the browser: plots, map, 3D, pictures, text, all at one time.

    Several logs are shown over each other. Nothing leaves this machine. Ctrl-C stops the viewer.
    """
    from logreel.cli import draw
    from logreel.outputs.view import Viewer
    from logreel.outputs.view.viewer import read_layout

    viewer = Viewer(
        paths, host=host, port=port, token=token, follow=follow, layout=read_layout(layout), tiles=tiles,
        allow_hosts=allow_host, tell=draw.say, definitions=msgdef, decrypt=decrypt,
    )  # fmt: skip
    if no_browser or not _opened(viewer.address):
        # The address is the data that a script asks for.
        click.echo(viewer.address)
    draw.say(f"viewing at {viewer.url}; Ctrl-C stops it")
    viewer.run()
    return 0


def _opened(address: str) -> bool:
    """Open *address* in a browser; return whether there is one."""
    import webbrowser

    return webbrowser.open(address)
