"""``logreel index``."""

from __future__ import annotations

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths


@click.command()
@common.files
@common.as_json
def index(files: tuple[str, ...], as_json: bool) -> int:
    """Write an index file for each log, so that it opens at once."""
    from logreel.registry import index_cache

    for file in paths.expand(files):
        path = str(index_cache.write(paths.file_of(file)))
        if as_json:
            draw.echo_json({"path": file, "index": path}, line=len(files) > 1)
        else:
            draw.say(f"wrote {path}")
    return 0
