"""Public names for authors of log formats; nothing inside logreel imports this module.

    >>> from logreel.plugin import ChannelInfo, Format, Layout, MessageIndex, Scan

Each name is loaded from its module at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from logreel.errors import DefinitionError, Finding, LogError, Problem, UnsupportedError, UsageError

if TYPE_CHECKING:
    from logreel.index.block_builder import BlockBuilder
    from logreel.index.block_table import Blocks, Separate
    from logreel.index.message_index import MessageIndex
    from logreel.index.ranges import PayloadRange
    from logreel.index.rules import ChannelRules, ComputedValues, FieldAt, StoredValues, SyntheticMessages
    from logreel.io.append_file import Appender
    from logreel.io.chunks import FILE, SYNTHETIC, ChunkCache, Chunks
    from logreel.io.source import Source
    from logreel.layout.arrow import Decoded
    from logreel.layout.layout import Layout
    from logreel.layout.nodes import (
        Align,
        Bytes,
        Expect,
        Field,
        FixedArray,
        Grid,
        Padding,
        Rest,
        Scalar,
        Sequence,
        String,
        Struct,
        Time,
    )
    from logreel.lenses.facts import Band, Chart, Fact, Section, Series
    from logreel.log.actor import Actor
    from logreel.log.growing import Growing
    from logreel.log.log import Channel, Log, Message
    from logreel.log.payload_decoder import PayloadDecoder
    from logreel.log.scan import Attachment, Change, ChannelInfo, Parameter, Saved, Scan, Segment, TextLine
    from logreel.log.schema import Schema
    from logreel.registry.commands import Answer, Command, Content, Example, Option, Playback
    from logreel.registry.format import Format
    from logreel.registry.registry import lazy
    from logreel.testing.suite import FormatSuite
    from logreel.write.format_writer import FormatWriter, SourceClock
    from logreel.write.log_copier import Excerpt, LogCopier
    from logreel.write.payloads import Payloads
    from logreel.write.record_headers import RecordHeaders
    from logreel.write.record_writer import RecordWriter
    from logreel.write.schema_maker import PayloadSplitter, SchemaMaker

#: Module of each name that is loaded at first use.
_LAZY = {
    "Actor": "logreel.log.actor",
    "Align": "logreel.layout.nodes",
    "Answer": "logreel.registry.commands",
    "Appender": "logreel.io.append_file",
    "Attachment": "logreel.log.scan",
    "Band": "logreel.lenses.facts",
    "BlockBuilder": "logreel.index.block_builder",
    "Blocks": "logreel.index.block_table",
    "Bytes": "logreel.layout.nodes",
    "Change": "logreel.log.scan",
    "Channel": "logreel.log.log",
    "ChannelInfo": "logreel.log.scan",
    "ChannelRules": "logreel.index.rules",
    "Chart": "logreel.lenses.facts",
    "ChunkCache": "logreel.io.chunks",
    "Chunks": "logreel.io.chunks",
    "Command": "logreel.registry.commands",
    "Content": "logreel.registry.commands",
    "ComputedValues": "logreel.index.rules",
    "Decoded": "logreel.layout.arrow",
    "Example": "logreel.registry.commands",
    "Excerpt": "logreel.write.log_copier",
    "Expect": "logreel.layout.nodes",
    "Field": "logreel.layout.nodes",
    "FieldAt": "logreel.index.rules",
    "FILE": "logreel.io.chunks",
    "Fact": "logreel.lenses.facts",
    "FixedArray": "logreel.layout.nodes",
    "Format": "logreel.registry.format",
    "FormatSuite": "logreel.testing.suite",
    "FormatWriter": "logreel.write.format_writer",
    "Grid": "logreel.layout.nodes",
    "Growing": "logreel.log.growing",
    "Layout": "logreel.layout.layout",
    "lazy": "logreel.registry.registry",
    "Log": "logreel.log.log",
    "LogCopier": "logreel.write.log_copier",
    "Message": "logreel.log.log",
    "MessageIndex": "logreel.index.message_index",
    "Option": "logreel.registry.commands",
    "Padding": "logreel.layout.nodes",
    "Parameter": "logreel.log.scan",
    "PayloadDecoder": "logreel.log.payload_decoder",
    "PayloadRange": "logreel.index.ranges",
    "Payloads": "logreel.write.payloads",
    "Playback": "logreel.registry.commands",
    "PayloadSplitter": "logreel.write.schema_maker",
    "RecordHeaders": "logreel.write.record_headers",
    "RecordWriter": "logreel.write.record_writer",
    "Rest": "logreel.layout.nodes",
    "Saved": "logreel.log.scan",
    "Scalar": "logreel.layout.nodes",
    "Scan": "logreel.log.scan",
    "Schema": "logreel.log.schema",
    "SchemaMaker": "logreel.write.schema_maker",
    "Section": "logreel.lenses.facts",
    "Segment": "logreel.log.scan",
    "Separate": "logreel.index.block_table",
    "Sequence": "logreel.layout.nodes",
    "Series": "logreel.lenses.facts",
    "Source": "logreel.io.source",
    "SourceClock": "logreel.write.format_writer",
    "StoredValues": "logreel.index.rules",
    "String": "logreel.layout.nodes",
    "Struct": "logreel.layout.nodes",
    "SYNTHETIC": "logreel.io.chunks",
    "SyntheticMessages": "logreel.index.rules",
    "TextLine": "logreel.log.scan",
    "Time": "logreel.layout.nodes",
}

__all__ = [
    "FILE",
    "SYNTHETIC",
    "Actor",
    "Align",
    "Answer",
    "Appender",
    "Attachment",
    "Band",
    "BlockBuilder",
    "Blocks",
    "Bytes",
    "Change",
    "Channel",
    "ChannelInfo",
    "ChannelRules",
    "Chart",
    "ChunkCache",
    "Chunks",
    "Command",
    "ComputedValues",
    "Content",
    "Decoded",
    "DefinitionError",
    "Example",
    "Excerpt",
    "Expect",
    "Fact",
    "Field",
    "FieldAt",
    "Finding",
    "FixedArray",
    "Format",
    "FormatSuite",
    "FormatWriter",
    "Grid",
    "Growing",
    "Layout",
    "Log",
    "LogCopier",
    "LogError",
    "Message",
    "MessageIndex",
    "Option",
    "Padding",
    "Parameter",
    "PayloadDecoder",
    "PayloadRange",
    "PayloadSplitter",
    "Payloads",
    "Playback",
    "Problem",
    "RecordHeaders",
    "RecordWriter",
    "Rest",
    "Saved",
    "Scalar",
    "Scan",
    "Schema",
    "SchemaMaker",
    "Section",
    "Segment",
    "Separate",
    "Sequence",
    "Series",
    "Source",
    "SourceClock",
    "StoredValues",
    "String",
    "Struct",
    "SyntheticMessages",
    "TextLine",
    "Time",
    "UnsupportedError",
    "UsageError",
    "lazy",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
