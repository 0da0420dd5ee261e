"""``logreel serve``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel serve logs": "offer the logs of a folder over HTTP",
        "logreel serve flight.ulg --port 8080 --log": "one log at a fixed port, with a line per request",
    },
)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=arguments.FILE)
@click.option(
    "--host",
    metavar="NAME",
    default="127.0.0.1",
    help="Address to listen at; by default only this machine can connect.",
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
    "--allow-host", multiple=True, metavar="NAME", help="Accept this further host name of the service."
)
@click.option(
    "--allow-origin", multiple=True, metavar="URL", help="Accept requests of web pages of this origin."
)
@click.option("--log", is_flag=True, help="Print a line for each request.")
@common.decrypt
@common.msgdef
def serve(
    paths: tuple[str, ...],
    host: str,
    port: int,
    token: str | None,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
    log: bool,
    decrypt: bool,
    msgdef: Definitions,
) -> int:
    """Serve logs and slices of them over HTTP: files, and all logs in and below folders.

    GET /logs lists the logs, /logs/ID describes one, /logs/ID/slice?topic=…&start=…&end=…&format=… sends a slice.
    Ctrl-C stops the service.
    """
    from logreel.cli import draw
    from logreel.outputs.serve import Service

    service = Service(
        paths, host=host, port=port, token=token, allow_hosts=allow_host, allow_origins=allow_origin,
        tell=draw.say, log=log, definitions=msgdef, decrypt=decrypt,
    )  # fmt: skip
    # A token chosen by the user is not printed.
    draw.say(f"serving at {service.url if token else service.address}")
    service.run()
    return 0
