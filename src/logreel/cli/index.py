"""``logreel index``."""

from __future__ import annotations

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.exits import LOST
from logreel.cli.help import verb


@verb(
    examples={
        "logreel index flight.ulg": "write an index file beside a log, which makes opening faster",
        "logreel index first.ulg second.ulg": "the same for several logs",
    },
)
@common.files
@common.as_json
def index(files: tuple[str, ...], as_json: bool) -> int:
    """Write an index file for each log, so that it opens at once."""
    from logreel.registry import index_cache
    from logreel.registry.log_files import one_file

    logs = paths.Logs(files)

    def write(file: paths.Given) -> None:
        path = str(index_cache.write(one_file(str(file))))
        if as_json:
            draw.echo_json({"path": file, "index": path}, line=logs.several)
        else:
            draw.say(f"wrote {path}")

    if not logs.several:
        write(logs.each[0])
        return 0
    written, code = common.open_each(logs, write)
    return LOST if code and written else code
