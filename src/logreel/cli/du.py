"""``logreel du``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.ops.inspect.du import Usage


@verb(
    examples={
        "logreel du drive.bag": "the bytes of each topic, and of what is no message",
        "logreel du drive.bag --chunks --json": "also of each chunk, as JSON",
    },
)
@common.logs
@common.selection
@click.option("--chunks", is_flag=True, help="Also show each chunk: place, compression, messages, bytes.")
@common.decrypt
@paths.text_output
@common.as_json
def du(logs: paths.Logs, selection: dict[str, Any], chunks: bool, as_json: bool) -> int:
    """Show what the bytes of a log are: payloads and records of each topic, definitions, indexes, damage.

    The column "stored" adds up to the size of the file. A compressed chunk is divided among its topics in proportion to
    their uncompressed bytes. With -t, -x, -S, -E or --where, the bytes are those of the log that slice would write.
    """
    from logreel.ops.inspect.du import du as look

    def usage(log: Log) -> Usage:
        return look(log, **selection)

    def show_one(found: Usage) -> None:
        show(found, chunks)

    _, code, lost = common.answer_each(logs, usage, show_one, as_json)
    return code or lost


def show(found: Usage, chunks: bool) -> None:
    """Print the bytes of a log for people."""
    draw.echo_head(f"{found.path}  {found.format}  {draw.size_text(found.size)}")
    rows = [
        (
            one.topic,
            str(one.messages),
            *map(str, (one.payload_bytes, one.record_bytes, one.stored_bytes)),
            _share(one.stored_bytes, found.size),
            _ratio(one.ratio),
        )
        for one in found.topics
    ]
    rows += [
        (f"({kind})", "", "", "", str(count), _share(count, found.size), "")
        for kind, count in found.other.items()
    ]
    sums = (
        sum(one.messages for one in found.topics),
        sum(one.payload_bytes for one in found.topics),
        sum(one.record_bytes for one in found.topics),
        found.size,
    )
    rows.append(("total", *map(str, sums), _share(found.size, found.size), ""))
    _table(("topic", "messages", "payload", "records", "stored", "share", "ratio"), rows)
    if chunks:
        draw.echo()
        parts = [
            (
                *map(str, (one.offset,)),
                one.compression,
                *map(str, (one.messages, one.size, one.stored_bytes)),
                _ratio(one.ratio),
            )
            for one in found.chunks
        ]
        if parts:
            draw.table(
                ("chunk at", "compression", "messages", "size", "stored", "ratio"), parts, (0, 2, 3, 4, 5)
            )
        else:
            draw.echo("no chunks")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table without the last column if no topic is compressed."""
    used = len(head) - all(row[-1] in ("", "1.00") for row in rows)
    draw.table(head[:used], [row[:used] for row in rows], range(1, used))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
