"""Open, check, recover, slice, merge, decode, convert and replay the logs of robots, vehicles and simulators.

    >>> import logreel
    >>> log = logreel.open("flight.ulg")                        # doctest: +SKIP
    >>> log["vehicle_attitude"]["q"]                            # doctest: +SKIP

Importing logreel imports the standard library only; everything else is loaded at first touch. Type checkers read the
names from ``__init__.pyi``.
"""

from __future__ import annotations

import importlib

from logreel._version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ERRORS = (
    "DamagedError DefinitionError FileChangedError Finding IncompleteOutputError LogError MissingDependencyError "
    "NotFoundError Problem TopicError UnknownFormatError UnreachableError UnsupportedError UsageError"
)
#: Public names by module, loaded at first use; ``name=other``: under another name than there, ``name=``: the module.
_MODULES = {
    "logreel.errors": _ERRORS,
    "logreel.fleet": "fleet=",
    "logreel.index.message_index": "MessageIndex",
    "logreel.layout.layout": "Layout",
    "logreel.limits": "Limits",
    "logreel.log.log": "Channel Log Message",
    "logreel.log.scan": "Schema",
    "logreel.meaning.notes": "Note notes Notes",
    "logreel.meaning.transforms": "RigidTransforms transforms Transforms",
    "logreel.ops.definitions": "definitions=",
    "logreel.ops.edit.edit": "edit",
    "logreel.ops.health.health": "health Health",
    "logreel.ops.inspect.check": "check",
    "logreel.ops.inspect.compare": "compare Comparison",
    "logreel.ops.inspect.diff": "diff",
    "logreel.ops.inspect.du": "du Usage",
    "logreel.ops.inspect.contract_file": "LearnedContract",
    "logreel.ops.inspect.info": "info",
    "logreel.ops.inspect.learn": "learn_contract",
    "logreel.ops.inspect.params": "params",
    "logreel.ops.inspect.stats": "stats",
    "logreel.ops.inspect.summary": "summary Summary",
    "logreel.ops.migrate": "migrate",
    "logreel.ops.query.align": "align",
    "logreel.ops.query.polars": "scan_polars",
    "logreel.ops.query.sql": "sql",
    "logreel.ops.record": "Feed live_source LiveSource record Ring",
    "logreel.ops.replay": "play Player Sink",
    "logreel.ops.rewrite.proof": "verify",
    "logreel.ops.rewrite.recover": "recover",
    "logreel.ops.rewrite.slice": "slice=slice_log sort=sort_log",
    "logreel.ops.rewrite.split": "split",
    "logreel.ops.selection": "Around Selection",
    "logreel.outputs.ci": "ci CiResult",
    "logreel.outputs.convert": "convert",
    "logreel.outputs.dataset": "dataset DatasetWritten",
    "logreel.outputs.media.arrays": "clouds pictures positions",
    "logreel.outputs.media.geotag": "geotag",
    "logreel.outputs.merge_formats": "merge",
    "logreel.outputs.page.plot": "Plot plot",
    "logreel.outputs.page.report": "Report report",
    "logreel.outputs.serve": "Service",
    "logreel.outputs.sinks": "sink",
    "logreel.outputs.view": "view Viewer",
    "logreel.registry.format": "Format",
    "logreel.registry.open": "open=open_log",
    "logreel.registry.open_growing": "open_growing",
    "logreel.registry.registry": "known_formats=formats",
    "logreel.write.writer": "create Writer",
}
_LAZY = {
    name: (module, inner if renamed else name)
    for module, names in _MODULES.items()
    for name, renamed, inner in (item.partition("=") for item in names.split())
}

__all__: list[str] = sorted([*_LAZY, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "errors":
        # A module of logreel itself, for which no format has to be asked.
        return importlib.import_module("logreel.errors")
    if name not in _LAZY:
        return _format_module(name)
    module, attribute = _LAZY[name]
    owner = importlib.import_module(module)
    value = getattr(owner, attribute) if attribute else owner
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
    return list(__all__)
