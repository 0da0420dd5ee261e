"""Public names for authors of log formats, definition languages, lenses, outputs and detectors.

    >>> from logreel.plugin import ChannelInfo, Format, Layout, MessageIndex, Scan

Nothing inside logreel imports this module. Each name is loaded from its module at first use; type checkers read the
names from ``plugin.pyi``.
"""

import importlib
from typing import Any

from logreel import errors as _errors

#: Public names by module.
_MODULES = {
    "logreel.index.block_table": "BlockBuilder Blocks Separate",
    "logreel.index.channel_index": "ChannelRules ComputedValues FieldAt StoredValues SyntheticMessages",
    "logreel.index.gather": "PayloadRange",
    "logreel.index.marked_records": "MarkedRecords",
    "logreel.index.message_index": "MessageIndex",
    "logreel.io.append_file": "Appender",
    "logreel.io.source": "ChunkCache Chunks FILE Source SYNTHETIC",
    "logreel.layout.arrow": "Decoded decode_variable",
    "logreel.layout.layout": "Layout",
    "logreel.layout.nodes": "Align Bytes Expect Field FixedArray Grid Padding Rest Scalar Sequence String Struct Time",
    "logreel.lenses.base": "LensFinder members Scaled",
    "logreel.lenses.cloud": "LaserScan PackedCloud PlainCloud Points",
    "logreel.lenses.facts": "Band Chart Detection Detector Fact NotAssessed runs Section Series",
    "logreel.lenses.image": "Image Picture",
    "logreel.lenses.motion": "Imu Joints LocalPose Pose Transform",
    "logreel.lenses.position": "Fixes Position",
    "logreel.lenses.text": "Text",
    "logreel.limits": "FixedLimit",
    "logreel.log.log": "Channel Log Message",
    "logreel.log.scan": (
        "Actor Attachment Change ChannelInfo Growing Parameter PayloadDecoder Saved Scan Schema Segment TextLine"
    ),
    "logreel.outputs.registry": "Job Output Shape",
    "logreel.registry.commands": "Answer Command Content Example Option Playback",
    "logreel.registry.format": "Folder Format",
    "logreel.registry.new_folder": "NewFolder",
    "logreel.registry.registry": "lazy lazy_value",
    "logreel.schemas.languages": "Hints Language Serializer",
    "logreel.testing.suite": "FormatSuite",
    "logreel.write.format_writer": (
        "FormatWriter PayloadSplitter Payloads RecordHeaders RecordWriter SchemaMaker SourceClock"
    ),
    "logreel.write.log_copier": "Excerpt LogCopier",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}
_ERRORS = "DefinitionError Finding LogError Problem UnsupportedError UsageError"
globals().update({name: getattr(_errors, name) for name in _ERRORS.split()})

__all__: list[str] = sorted([*_LAZY, *_ERRORS.split()])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
