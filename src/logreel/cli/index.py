"""``logreel index``."""

from __future__ import annotations

import rich_click as click

from logreel.cli import common, draw


@click.command()
@common.file
@common.as_json
def index(file: str, as_json: bool) -> int:
    """Write an index file for a log, so that it opens at once."""
    from logreel.registry import index_cache

    path = str(index_cache.write(file))
    if as_json:
        draw.echo_json({"path": file, "index": path})
    else:
        draw.say(f"wrote {path}")
    return 0
