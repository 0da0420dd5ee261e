"""Build the Scan of a ULog from what reading found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from logreel.errors import UnsupportedError
from logreel.formats.ulog.clock import UNIX_US
from logreel.formats.ulog.found import Found, Topic
from logreel.formats.ulog.index_cache import IndexComparison, save
from logreel.formats.ulog.log_times import log_times, logged_times
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.formats.ulog.reader import Reader
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD
from logreel.formats.ulog.segments import segment_found, segment_list
from logreel.formats.ulog.synthetic import SyntheticChannel, synthetic_channels, synthetic_messages
from logreel.formats.ulog.text_lines import text_lines
from logreel.formats.ulog.time_jumps import first_jump
from logreel.formats.ulog.utc import Utc, utc
from logreel.formats.ulog.verify import verify
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, FieldAt, SyntheticMessages
from logreel.io.chunks import Buffer, Chunks
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.scan import ChannelInfo, Parameter, Scan, TextLine
from logreel.log.schema import Schema

#: Bytes of the flag bits record that every writer writes.
_FLAGS = HEAD + 40
_RAW = Layout(Struct((Field("data", Rest()),)), "raw")


def scan(source: Source, found: Found) -> Scan:
    """Return the Scan of a whole file, which gives access to its segments if there are several."""
    whole = scan_segment(source, found)
    if len(found.segments) < 2:
        return whole

    def segment(number: int) -> Scan:
        return replace(scan_segment(source, segment_found(source, found, number)), saved=None)

    return replace(whole, segments=lambda: segment_list(found, segment), segment=segment)


def scan_segment(source: Source, found: Found) -> Scan:
    """Return the Scan of what was found in a file, or in one of its segments."""
    others = NonDataRecords(source, found)
    synthetic = synthetic_channels(others)
    blocks = found.blocks
    if len(found.channels) < len(found.topics) or synthetic:
        blocks = blocks.reshaped(found.channel_topics, len(synthetic))
    chunks = Chunks(source)
    times = log_times(others, chunks, blocks)
    rules = [ChannelRules(*pair) for pair in zip(times.rules, _payload_sizes(others), strict=True)]
    rules += [ChannelRules(FieldAt(0, 8), 0, synthetic=len(channel.offsets)) for channel in synthetic]
    compared = IndexComparison(source, found) if source.digests is not None else None

    def build() -> tuple[Buffer, dict[int, SyntheticMessages]]:
        if compared is not None:
            compared.records(others.positions)
        return synthetic_messages(others, synthetic, times.of_records)

    def parameters() -> list[Parameter]:
        if compared is not None:
            compared.records(np.array(found.parsed, np.int64))
        return others.keyed.parameters(times.of_records)

    def text() -> list[TextLine]:
        if compared is not None:
            compared.records(others.texts)
        return text_lines(others, index)

    resolve = None if compared is None else compared.blocks
    index = MessageIndex(chunks, blocks, rules, build, resolve)
    has_wall_clock = found.segment_us[found.main_segment - 1] >= UNIX_US
    clock = cache(lambda: Utc(0) if has_wall_clock else utc(others, index))
    return Scan(
        version=str(found.version),
        epoch="unix" if has_wall_clock else "boot",
        start=times.start,
        end=times.end,
        channels=[*map(_channel_info, found.channels), *map(_synthetic_info, synthetic)],
        index=index,
        problems=found.problems,
        metadata=others.keyed.metadata,
        attachments=others.keyed.attachments,
        parameters=parameters,
        text=text,
        utc_offset=lambda: clock().offset,
        utc_notes=lambda: clock().notes,
        saved=save(found),
        verify=partial(verify, others, index),
        logged_times=partial(logged_times, times, index),
        format_state=others,
    )


def _channel_info(topic: Topic) -> ChannelInfo:
    if topic.raw:
        return ChannelInfo(topic.channel_name, Schema(topic.name, "ulog"), lambda: _RAW)
    definitions, name = topic.definitions, topic.name
    schema = Schema(name, "ulog", definitions.text(name))
    layout = partial(definitions.layout, name)
    return ChannelInfo(topic.channel_name, schema, layout, {"multi_id": topic.instance})


def _synthetic_info(channel: SyntheticChannel) -> ChannelInfo:
    schema = Schema(channel.kind[1:], "ulog")
    return ChannelInfo(channel.topic, schema, partial(Layout, channel.root, channel.topic))


def _payload_sizes(others: NonDataRecords) -> list[int | FieldAt]:
    """Return the size rule of each channel that is not synthetic: one number if all its messages have that size.

    A message may contain its trailing padding or not. If no message does, the size of the file follows from the number
    of messages, and only then; this comparison saves reading the size of every message.
    """
    found, data = others.found, others.source.data
    if found.is_growing:
        # Comparing would read all other records again whenever the file has grown.
        return [FieldAt(-DATA_HEAD, 2, 1, -2)] * len(found.channels)
    least = [0 if t.raw else t.definitions.extent(t.name).least for t in found.topics]
    positions = np.concatenate([found.notes, np.array(found.parsed, np.int64)])
    lengths = data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8
    messages = np.array(found.topic_counts, np.int64) * (np.array(least, np.int64) + DATA_HEAD)
    size_without_padding = found.begin + int((lengths + HEAD).sum()) + int(messages.sum())
    if not found.problems and size_without_padding == others.source.size:
        return [least[i] for i in found.channel_topics]
    return [FieldAt(-DATA_HEAD, 2, 1, -2)] * len(found.channels)


class UlogGrowing:
    """The Growing of one ULog."""

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._flags = b""
        self._blocks_checked = 0

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        flags = source.read(FILE_HEADER, _FLAGS)
        has_flags, size = flags[2:3] == b"B", int.from_bytes(flags[:2], "little")
        if len(flags) < HEAD or (has_flags and source.size < FILE_HEADER + HEAD + size):
            raise UnsupportedError("the file ends inside its header", path=source.name)
        # Appending writes the position of the appended data into the flags.
        if self._reader is None or (has_flags and flags != self._flags):
            self._reader, self._flags, self._blocks_checked = Reader(source), flags, 0
        if not self._reader.feed(source):
            return None
        found = self._reader.found()
        if len(found.blocks.base) > self._blocks_checked + 1:
            self._blocks_checked = len(found.blocks.base)
            if first_jump(source, found) is not None:
                # Another log begins there: rare, and only in files that are not written at the moment.
                self._reader = None
                return None
        return replace(scan(source, found), saved=None)
