"""``logreel convert -``: lines of JSON and tables, on standard output or in files, while a log comes through a pipe."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from logreel.cli import draw, following

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from logreel.io.output_stream import OutputStream
    from logreel.log.log import Channel, Log
    from logreel.log.schema import Schema
    from logreel.outputs.registry import Output
    from logreel.outputs.tables.ndjson import Decoder


def convert_as_it_comes(
    log: Log,
    event: following.Ending,
    output: Output,
    path: str | OutputStream,
    force: bool,
    topics: Sequence[str],
    exclude: Sequence[str],
) -> int:
    """Write the messages of a growing log when they are complete; return the exit code.

    path   file or folder to write, called ``path.active`` until the log is complete; or standard output
    force  replace an existing file
    topics, exclude  as given by -t and -x; what no channel has at the end is an error, as for a whole log
    """
    from logreel.log.decrypted import decrypted_notes
    from logreel.outputs.registry import Shape

    draw.show_notes(decrypted_notes(log))
    if output.shape is Shape.LOG:
        return _log(log, event, output, path, force)
    if output.shape is Shape.TABLES:
        return _tables(log, event, output, path, force, topics, exclude)
    if not isinstance(path, str):
        safe = sys.stdout.isatty()
        return _convert(log, event, output, "stdout", lambda text: _print(text, safe), topics, exclude)
    from logreel.io.append_file import Appender

    out = Appender(path, force)
    event.flush = out.flush
    try:
        code = _convert(log, event, output, path, lambda text: out.put(text.encode("ascii")), topics, exclude)
    except BaseException:
        # What came until an error is kept under the name of an unfinished file.
        (out.leave if out.tell() else out.discard)()
        raise
    (out.leave if event.is_set() else out.finish)()
    return code


def _log(log: Log, event: following.Ending, output: Output, path: str | OutputStream, force: bool) -> int:
    """Write a log: a copy of the same format while it comes, any other one when it is complete."""
    from logreel.ops.rewrite.growing import copies_bytes, copy_growing
    from logreel.ops.rewrite.target import format_to_write
    from logreel.outputs.convert import convert

    # The name of a stream is that of a file with its suffix.
    name = path if isinstance(path, str) else path.name
    copy = None
    if copies_bytes(log, format_to_write(name, log)):
        copy = copy_growing(log, path, force, following.POLL, event)
    else:
        for _ in log.changes(poll=following.POLL, stop=event):
            pass
    if event.is_set():
        return following.finish(log, event)
    skipped: list[str] = []
    is_equal = False
    if copy is not None:
        is_equal, done = copy.is_what(lambda stream: convert(log, stream), output.suffix)
        if is_equal:
            copy.finish()
        elif isinstance(path, str):
            copy.discard()
        else:
            skipped.append(
                "the copy is not the conversion of the whole log: save the log as a file, and convert that"
            )
    if copy is None or (isinstance(path, str) and not is_equal):
        with draw.progress(name if isinstance(path, str) else "-") as progress:
            done = convert(log, path, force=force, progress=progress)
    made = sum(one.file is not None for one in done.channels)
    many = f"{done.rows} {output.item}{'s' * (done.rows != 1)} of {made} channel{'s' * (made != 1)}"
    draw.say(f"wrote {many} to {path if isinstance(path, str) else 'stdout'}")
    draw.show_notes(done.notes)
    return draw.finish(log, [*done.skipped, *skipped])


def _tables(
    log: Log,
    event: following.Ending,
    output: Output,
    path: str | OutputStream,
    force: bool,
    topics: Sequence[str],
    exclude: Sequence[str],
) -> int:
    """Write tables; see ``convert_as_it_comes``."""
    from logreel.log.topic_match import listed
    from logreel.outputs.convert import channels_for, is_folder
    from logreel.outputs.tables.growing import convert_growing

    def chosen(log: Log) -> tuple[list[Channel], dict[str, list[str] | None]]:
        fields = _chosen(log, topics)
        return channels_for(log, listed(fields) if topics else None, output, exclude), fields

    done = convert_growing(
        log,
        output,
        path,
        isinstance(path, str) and is_folder(output, path),
        lambda log: _chosen_so_far(log, topics, exclude),
        chosen,
        force=force,
        poll=following.POLL,
        stop=event,
    )
    if done is None:
        return following.finish(log, event)
    made = sum(one.file is not None for one in done.channels)
    many = f"{done.rows} {output.item}{'s' * (done.rows != 1)} of {made} channel{'s' * (made != 1)}"
    draw.say(f"wrote {many} to {path if isinstance(path, str) else 'stdout'}")
    return following.finish(log, event, list(done.skipped))


def _print(text: str, is_terminal: bool) -> None:
    sys.stdout.write((draw.safe(text[:-1]) + "\n") if is_terminal else text)


def _convert(
    log: Log,
    event: following.Ending,
    output: Output,
    path: str,
    write: Callable[[str], None],
    topics: Sequence[str],
    exclude: Sequence[str],
) -> int:
    """Pass the lines to *write*; see ``convert_as_it_comes``.

    The lines are those of the whole log, in the order of the log instead of by time. What turns out to be different
    at the end, because a later part of the log gives channels another meaning, is reported as skipped.
    """
    from logreel.log.topic_match import listed
    from logreel.outputs.convert import channels_for
    from logreel.outputs.tables.ndjson import Decoder, line

    skipped: list[str] = []
    decoders: dict[str, Decoder] = {}
    fields: dict[str, list[str] | None] = {}
    used: dict[str, tuple[Schema, list[str] | None]] = {}
    seen: Counter[str] = Counter()
    rows: Counter[str] = Counter()

    def choose(log: Log) -> list[Channel]:
        fields.clear()
        fields.update(_chosen_so_far(log, topics, exclude))
        return [log[topic] for topic in fields]

    for message in log.follow(choose, poll=following.POLL, stop=event):
        ch = message.channel
        seen[ch.topic] += 1
        if ch.topic not in decoders:
            decoders[ch.topic] = Decoder([ch], skipped, fields)
            used[ch.topic] = ch.schema, fields[ch.topic]
        data = decoders[ch.topic](message)
        if data is not None:
            write(line(message, data) + "\n")
            rows[ch.topic] += 1
    if log.is_complete:
        fields = _chosen(log, topics)
        channels = channels_for(log, listed(fields) if topics else None, output, exclude)
        _ = Decoder((ch for ch in channels if ch.topic not in decoders), skipped)
        for decoder in decoders.values():
            decoder.report()
        whole = {ch.topic: (len(ch), (ch.schema, fields.get(ch.topic))) for ch in channels if len(ch)}
        for topic in {**whole, **seen}:
            if whole.get(topic) != (seen[topic], used.get(topic)):
                count = whole[topic][0] if topic in whole else 0
                skipped.append(
                    f"the lines of {topic!r} are not those of the whole log, which has {count} messages of it: "
                    "save the log as a file and convert that"
                )
        total, many = rows.total(), len(rows)
        some = f"{total} {output.item}{'s' * (total != 1)} of {many} channel{'s' * (many != 1)}"
        draw.say(f"wrote {some} to {path}")
    return following.finish(log, event, skipped)


def _chosen(log: Log, topics: Sequence[str]) -> dict[str, list[str] | None]:
    """Return the channels and fields that -t chooses, all channels without -t; raises TopicError, NotFoundError."""
    from logreel.log.topic_fields import fields_by_topic

    return dict(fields_by_topic(log, topics)) if topics else dict.fromkeys(log.channels)


def _chosen_so_far(log: Log, topics: Sequence[str], exclude: Sequence[str]) -> dict[str, list[str] | None]:
    """Return the chosen channels of the log so far, with their fields; names that no channel has may come later."""
    from logreel.errors import LogError

    known = []
    for topic in topics:
        with suppress(LogError):
            _chosen(log, [topic])
            known.append(topic)
    kept = _chosen(log, known) if known or not topics else {}
    for topic in exclude:
        with suppress(LogError):
            without = {ch.topic for ch in log.match(topic)}
            kept = {name: paths for name, paths in kept.items() if name not in without}
    return kept
