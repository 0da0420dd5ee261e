"""``logreel serve``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=arguments.FILE)
@click.option(
    "--host", metavar="NAME", default="127.0.0.1", help="Where to listen; only this machine by default."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="0: any that is free.")
@click.option(
    "--token", envvar="LOGREEL_TOKEN", metavar="TEXT", help="Instead of a random one; or LOGREEL_TOKEN."
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="A further name of this service.")
@click.option("--allow-origin", multiple=True, metavar="URL", help="Let pages of this origin ask.")
@click.option("--log", is_flag=True, help="Tell of every request.")
@common.msgdef
def serve(
    paths: tuple[str, ...],
    host: str,
    port: int,
    token: str | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    log: bool,
    msgdef: Definitions,
) -> int:
    """Serve slices of logs over HTTP: of files, and of all logs in and below folders.

    GET /logs lists them, /logs/ID tells about one, /logs/ID/slice?topic=…&start=…&end=…&format=… sends a part.
    Ctrl-C ends it.
    """
    from logreel.cli import draw
    from logreel.outputs.serve import Service

    service = Service(
        paths, host=host, port=port, token=token, allow_hosts=allow_host, allow_origins=allow_origin,
        tell=draw.say, log=log, definitions=msgdef,
    )  # fmt: skip
    # Who chose the token knows it; it need not stand in a scrollback.
    draw.say(f"serving at {service.url if token else service.address}")
    service.run()
    return 0
