"""All known formats, and detection of the format of a file by its content, never by suffix alone."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from logreel.errors import UnknownFormatError, UnsupportedError
from logreel.io.notices import listeners, notice
from logreel.io.source import Source
from logreel.log.scan import Saved, Scan
from logreel.registry.format import Format

if TYPE_CHECKING:
    from logreel.lenses.charts import Band, Chart
    from logreel.lenses.detection import Detector
    from logreel.lenses.meaning import Section
    from logreel.log.log import Log, Message
    from logreel.registry.commands import Command
    from logreel.registry.storage import Storage

GROUP = "logreel.formats"


@cache
def _builtin_formats() -> dict[str, Format]:
    """Return the built-in formats: each folder below ``logreel.formats``."""
    package = importlib.import_module(GROUP)
    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg:
            fmt: Format = importlib.import_module(f"{GROUP}.{module.name}").FORMAT
            found[fmt.name] = fmt
    return found


@cache
def _plugin_formats() -> dict[str, Format]:
    """Return the formats of other packages, by entry point; loaded only if no built-in format fits."""
    from importlib import metadata

    found = {}
    for point in metadata.entry_points(group=GROUP):
        try:
            fmt = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Also SystemExit: a module that is a program, too, may end it when it is imported.
            _warn(point.name, f"it cannot be loaded: {error!r}")
            continue
        if not isinstance(fmt, Format):
            _warn(point.name, f"{point.value} is no Format")
        elif fmt.name not in _builtin_formats():
            found[fmt.name] = fmt
    return found


def _warn(name: str, why: str) -> None:
    # A broken plug-in must not prevent logs of other formats from opening.
    text = f"log format plug-in {name!r} is left out: {why}"
    if listeners:
        notice(text)
    else:
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def formats() -> dict[str, Format]:
    """Return all formats by name, built-in formats first."""
    return {**_builtin_formats(), **_plugin_formats()}


def log_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, in lower case, for ``str.endswith``."""
    return tuple(suffix for fmt in formats().values() for suffix in fmt.suffixes)


def format_named(name: str) -> Format | None:
    """Return a format by name, or None; the plug-ins are only looked at for a name that no built-in format has."""
    return _builtin_formats().get(name) or _plugin_formats().get(name)


def suffix_of(form: str) -> str:
    """Return the suffix for a format name or suffix: ``rosbag`` is ``.bag``, ``csv`` is ``.csv``."""
    name = form.lower()
    fmt = format_named(name)
    return fmt.suffixes[0] if fmt is not None else f".{name.removeprefix('.')}"


def public_module(name: str) -> ModuleType | None:
    """Return the format-specific API module, such as ``logreel.carla``; None if the format has none."""
    fmt = format_named(name)
    return importlib.import_module(fmt.api) if fmt is not None and fmt.api else None


def commands_of(fmt: Format) -> tuple[Command, ...]:
    """Return the commands of a format; they are imported by this call."""
    found: tuple[Command, ...] = _named(fmt.commands) if fmt.commands else ()
    return found


def describer(log: Log) -> Callable[[Sequence[Message]], list[str]] | None:
    """Return the function that describes messages of one time as lines of text; None if the format has none."""
    fmt = format_named(log.format)
    if fmt is None or not fmt.frames:
        return None
    found: Callable[[Sequence[Message]], list[str]] = _named(fmt.frames)(log)
    return found


def charts_of(log: Log) -> Iterable[Chart]:
    """Return the charts that the format of *log* proposes; empty if it proposes none."""
    fmt = format_named(log.format)
    found: Iterable[Chart] = _named(fmt.charts)(log) if fmt is not None and fmt.charts else ()
    return found


def bands_of(log: Log) -> Iterable[Band]:
    """Return the bands that the format of *log* finds; empty if it finds none."""
    fmt = format_named(log.format)
    found: Iterable[Band] = _named(fmt.bands)(log) if fmt is not None and fmt.bands else ()
    return found


def meaning_of(log: Log) -> Iterable[Section]:
    """Return the sections of a summary that the format of *log* states; empty if it states none."""
    fmt = format_named(log.format)
    found: Iterable[Section] = _named(fmt.meaning)(log) if fmt is not None and fmt.meaning else ()
    return found


def detectors_of(log: Log) -> Sequence[Detector]:
    """Return the detectors that the format of *log* offers."""
    fmt = format_named(log.format)
    return detectors_of_format(fmt) if fmt is not None else ()


def detectors_of_format(fmt: Format) -> Sequence[Detector]:
    """Return the detectors that a format offers."""
    found: Sequence[Detector] = _named(fmt.detectors) if fmt.detectors else ()
    return found


def storage_of(log: Log) -> Storage | None:
    """Return how the records of the format of *log* lie in files; None if the format does not say it."""
    fmt = formats().get(log.format)
    found: Storage | None = _named(fmt.storage) if fmt is not None and fmt.storage else None
    return found


def states_of(log: Log) -> Mapping[str, Mapping[str, Mapping[int, str]]]:
    """Return names of the numbers that fields of *log* hold, by topic, path and number; empty if there are none."""
    fmt = format_named(log.format)
    found: Mapping[str, Mapping[str, Mapping[int, str]]] = (
        _named(fmt.states)(log) if fmt is not None and fmt.states else {}
    )
    return found


def lazy(place: str) -> Callable[..., Any]:
    """Return a function that imports and calls ``module:name``, so that unused formats are not imported."""
    return _Lazy(place)


@dataclass(frozen=True, slots=True)
class _Lazy:
    """A function that is imported when it is called, or its signature is asked for."""

    place: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _named(self.place)(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(_named(self.place))


def lazy_scan(place: str) -> Callable[[Source, Saved | None], Scan | None]:
    """Return a ``Format.scan`` that calls ``module:name`` with the Source; it restores no saved scan."""

    def scan(source: Source, saved: Saved | None) -> Scan | None:
        found: Scan | None = _named(place)(source) if saved is None else None
        return found

    return scan


def _named(place: str) -> Any:
    """Return the object ``module:name``, importing the module."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _sniffed(source: Source) -> Format | None:
    for fmt in _builtin_formats().values():
        if fmt.sniff(source):
            return fmt
    for fmt in _plugin_formats().values():
        try:
            if fmt.sniff(source):
                return fmt
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            _warn(fmt.name, f"looking at {source.name} it failed with {error!r}")
    return None


def find_format(source: Source, name: str | None = None) -> Format:
    """Return the format of *source*, or the format called *name*.

    Raises UnknownFormatError if no format recognises the content, UnsupportedError for an unknown *name*.
    """
    if name is not None:
        fmt = format_named(name)
        if fmt is None:
            raise UnsupportedError(f"no format {name!r}; there are: {', '.join(formats())}", path=source.name)
        return fmt
    if source.size == 0:
        raise UnknownFormatError("the file is empty", path=source.name)
    fmt = _sniffed(source)
    if fmt is not None:
        return fmt
    begins = source.head[:8].hex(" ")
    raise UnknownFormatError(f"not a log of a known format (it begins with {begins})", path=source.name)
