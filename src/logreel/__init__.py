"""Open, check, recover, slice, merge, decode, convert and replay the logs of robots, vehicles and simulators.

    >>> import logreel
    >>> log = logreel.open("flight.ulg")                        # doctest: +SKIP
    >>> log["vehicle_attitude"]["q"]                            # doctest: +SKIP

Importing logreel imports numpy and the standard library only; everything else is loaded at first touch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from logreel._version import __version__
from logreel.errors import (
    DamagedError,
    DefinitionError,
    FileChangedError,
    Finding,
    IncompleteOutputError,
    LogError,
    MissingDependencyError,
    NotFoundError,
    Problem,
    TopicError,
    UnknownFormatError,
    UnreachableError,
    UnsupportedError,
    UsageError,
)

if TYPE_CHECKING:
    from logreel import fleet
    from logreel.index.message_index import MessageIndex
    from logreel.layout.layout import Layout
    from logreel.limits import Limits
    from logreel.log.log import Channel, Log, Message
    from logreel.log.schema import Schema
    from logreel.meaning.transforms import RigidTransforms, Transforms, transforms
    from logreel.ops import definitions
    from logreel.ops.edit.edit import edit
    from logreel.ops.health.health import Health, health
    from logreel.ops.inspect.check import check
    from logreel.ops.inspect.diff import diff
    from logreel.ops.inspect.du import Usage, du
    from logreel.ops.inspect.info import info
    from logreel.ops.inspect.params import params
    from logreel.ops.inspect.stats import stats
    from logreel.ops.inspect.summary import Summary, summary
    from logreel.ops.migrate import migrate
    from logreel.ops.query.align import align
    from logreel.ops.query.polars import scan_polars
    from logreel.ops.query.sql import sql
    from logreel.ops.record import Feed, LiveSource, live_source, record
    from logreel.ops.replay import Player, Sink, play
    from logreel.ops.rewrite.recover import recover
    from logreel.ops.rewrite.slice import slice_log as slice
    from logreel.ops.rewrite.slice import sort_log as sort
    from logreel.ops.rewrite.split import split
    from logreel.ops.selection import Selection
    from logreel.outputs.convert import convert
    from logreel.outputs.dataset import DatasetWritten, dataset
    from logreel.outputs.media.arrays import clouds, pictures, positions
    from logreel.outputs.media.geotag import geotag
    from logreel.outputs.merge_formats import merge
    from logreel.outputs.page.plot import Plot, plot
    from logreel.outputs.page.report import Report, report
    from logreel.outputs.serve import Service
    from logreel.outputs.sinks.registry import sink
    from logreel.outputs.view import Viewer, view
    from logreel.registry.format import Format
    from logreel.registry.open import open_log as open
    from logreel.registry.open_growing import open_growing
    from logreel.registry.registry import formats as known_formats
    from logreel.write.writer import Writer, create

_LAZY = {
    "open": ("logreel.registry.open", "open_log"),
    "open_growing": ("logreel.registry.open_growing", "open_growing"),
    "Log": ("logreel.log.log", "Log"),
    "Message": ("logreel.log.log", "Message"),
    "Channel": ("logreel.log.log", "Channel"),
    "MessageIndex": ("logreel.index.message_index", "MessageIndex"),
    "Schema": ("logreel.log.schema", "Schema"),
    "Selection": ("logreel.ops.selection", "Selection"),
    "Layout": ("logreel.layout.layout", "Layout"),
    "Limits": ("logreel.limits", "Limits"),
    "Format": ("logreel.registry.format", "Format"),
    "Writer": ("logreel.write.writer", "Writer"),
    "create": ("logreel.write.writer", "create"),
    "known_formats": ("logreel.registry.registry", "formats"),
    "align": ("logreel.ops.query.align", "align"),
    "Plot": ("logreel.outputs.page.plot", "Plot"),
    "Report": ("logreel.outputs.page.report", "Report"),
    "report": ("logreel.outputs.page.report", "report"),
    "geotag": ("logreel.outputs.media.geotag", "geotag"),
    "plot": ("logreel.outputs.page.plot", "plot"),
    "clouds": ("logreel.outputs.media.arrays", "clouds"),
    "pictures": ("logreel.outputs.media.arrays", "pictures"),
    "positions": ("logreel.outputs.media.arrays", "positions"),
    "check": ("logreel.ops.inspect.check", "check"),
    # Without an attribute: the module itself.
    "definitions": ("logreel.ops.definitions", ""),
    "diff": ("logreel.ops.inspect.diff", "diff"),
    "du": ("logreel.ops.inspect.du", "du"),
    "Usage": ("logreel.ops.inspect.du", "Usage"),
    "fleet": ("logreel.fleet", ""),
    "info": ("logreel.ops.inspect.info", "info"),
    "params": ("logreel.ops.inspect.params", "params"),
    "sql": ("logreel.ops.query.sql", "sql"),
    "transforms": ("logreel.meaning.transforms", "transforms"),
    "Transforms": ("logreel.meaning.transforms", "Transforms"),
    "RigidTransforms": ("logreel.meaning.transforms", "RigidTransforms"),
    "stats": ("logreel.ops.inspect.stats", "stats"),
    "edit": ("logreel.ops.edit.edit", "edit"),
    "health": ("logreel.ops.health.health", "health"),
    "Health": ("logreel.ops.health.health", "Health"),
    "summary": ("logreel.ops.inspect.summary", "summary"),
    "Summary": ("logreel.ops.inspect.summary", "Summary"),
    "slice": ("logreel.ops.rewrite.slice", "slice_log"),
    "merge": ("logreel.outputs.merge_formats", "merge"),
    "migrate": ("logreel.ops.migrate", "migrate"),
    "split": ("logreel.ops.rewrite.split", "split"),
    "sort": ("logreel.ops.rewrite.slice", "sort_log"),
    "play": ("logreel.ops.replay", "play"),
    "Player": ("logreel.ops.replay", "Player"),
    "Sink": ("logreel.ops.replay", "Sink"),
    "sink": ("logreel.outputs.sinks.registry", "sink"),
    "record": ("logreel.ops.record", "record"),
    "live_source": ("logreel.ops.record", "live_source"),
    "LiveSource": ("logreel.ops.record", "LiveSource"),
    "Feed": ("logreel.ops.record", "Feed"),
    "recover": ("logreel.ops.rewrite.recover", "recover"),
    "scan_polars": ("logreel.ops.query.polars", "scan_polars"),
    "convert": ("logreel.outputs.convert", "convert"),
    "dataset": ("logreel.outputs.dataset", "dataset"),
    "DatasetWritten": ("logreel.outputs.dataset", "DatasetWritten"),
    "Service": ("logreel.outputs.serve", "Service"),
    "Viewer": ("logreel.outputs.view", "Viewer"),
    "view": ("logreel.outputs.view", "view"),
}

__all__ = [
    "Channel",
    "DamagedError",
    "DatasetWritten",
    "DefinitionError",
    "Feed",
    "FileChangedError",
    "Finding",
    "Format",
    "Health",
    "IncompleteOutputError",
    "Layout",
    "Limits",
    "LiveSource",
    "Log",
    "LogError",
    "Message",
    "MessageIndex",
    "MissingDependencyError",
    "NotFoundError",
    "Player",
    "Plot",
    "Problem",
    "Report",
    "RigidTransforms",
    "Schema",
    "Selection",
    "Service",
    "Sink",
    "Summary",
    "TopicError",
    "Transforms",
    "UnknownFormatError",
    "UnreachableError",
    "UnsupportedError",
    "Usage",
    "UsageError",
    "Viewer",
    "Writer",
    "__version__",
    "align",
    "check",
    "clouds",
    "convert",
    "create",
    "dataset",
    "definitions",
    "diff",
    "du",
    "edit",
    "fleet",
    "geotag",
    "health",
    "info",
    "known_formats",
    "live_source",
    "merge",
    "migrate",
    "open",
    "open_growing",
    "params",
    "pictures",
    "play",
    "plot",
    "positions",
    "record",
    "recover",
    "report",
    "scan_polars",
    "sink",
    "slice",
    "sort",
    "split",
    "sql",
    "stats",
    "summary",
    "transforms",
    "view",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        return _format_module(name)
    module, attribute = _LAZY[name]
    found = importlib.import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def _format_module(name: str) -> Any:
    """Return the format-specific API module called *name*, e.g. ``logreel.carla``; raises AttributeError if none."""
    module = None
    if not name.startswith("_"):
        from logreel.registry.registry import public_module

        module = public_module(name)
    if module is None:
        raise AttributeError(f"module 'logreel' has no attribute {name!r}")
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
