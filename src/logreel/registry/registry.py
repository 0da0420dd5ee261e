"""All known formats, and detection of the format of a file by its content, never by suffix alone."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from logreel.errors import UnknownFormatError, UnsupportedError
from logreel.io.source import Source
from logreel.log.scan import Saved, Scan
from logreel.registry.format import Format
from logreel.registry.plugins import Lazy, Registry

if TYPE_CHECKING:
    from logreel.layout.layout import Layout
    from logreel.lenses.facts import Band, Chart, Detector, Section
    from logreel.log.log import Log, Message
    from logreel.log.schema import Schema
    from logreel.registry.commands import Command
    from logreel.registry.format import Storage

GROUP = "logreel.formats"


def _builtin_formats() -> dict[str, Format | Lazy]:
    """Return where the built-in formats are: each folder below ``logreel.formats``, by name."""
    package = importlib.import_module(GROUP)
    names = [module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg]
    return {name: Lazy(f"{GROUP}.{name}:FORMAT") for name in names}


#: All formats; those of other packages are loaded only if no built-in format fits.
FORMATS = Registry("log format", GROUP, _builtin_formats, Format, lambda fmt: fmt.name)


def formats() -> dict[str, Format]:
    """Return all formats by name, built-in formats first."""
    return FORMATS.all()


def log_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, in lower case, for ``str.endswith``."""
    return tuple(suffix for fmt in formats().values() for suffix in fmt.suffixes)


def format_named(name: str) -> Format | None:
    """Return a format by name, or None; the plug-ins are only looked at for a name that no built-in format has."""
    return FORMATS.get(name)


def suffix_of(form: str) -> str:
    """Return the suffix for a format name or suffix: ``rosbag`` is ``.bag``, ``csv`` is ``.csv``."""
    name = form.lower()
    fmt = format_named(name)
    return fmt.suffixes[0] if fmt is not None else f".{name.removeprefix('.')}"


def public_module(name: str) -> ModuleType | None:
    """Return the format-specific API module, such as ``logreel.carla``; None if the format has none."""
    fmt = format_named(name)
    return fmt.api() if fmt is not None and fmt.api is not None else None


def describer(log: Log) -> Callable[[Sequence[Message]], list[str]] | None:
    """Return the function that describes messages of one time as lines of text; None if the format has none."""
    fmt = format_named(log.format)
    return fmt.frames(log) if fmt is not None and fmt.frames is not None else None


def charts_of(log: Log) -> Iterable[Chart]:
    """Return the charts that the format of *log* proposes; empty if it proposes none."""
    fmt = format_named(log.format)
    return fmt.charts(log) if fmt is not None and fmt.charts is not None else ()


def bands_of(log: Log) -> Iterable[Band]:
    """Return the bands that the format of *log* finds; empty if it finds none."""
    fmt = format_named(log.format)
    return fmt.bands(log) if fmt is not None and fmt.bands is not None else ()


def meaning_of(log: Log) -> Iterable[Section]:
    """Return the sections of a summary that the format of *log* states; empty if it states none."""
    fmt = format_named(log.format)
    return fmt.meaning(log) if fmt is not None and fmt.meaning is not None else ()


def detectors_of(log: Log) -> Sequence[Detector]:
    """Return the detectors that the format of *log* offers."""
    fmt = format_named(log.format)
    return detectors_of_format(fmt) if fmt is not None else ()


def detectors_of_format(fmt: Format) -> Sequence[Detector]:
    """Return the detectors that a format offers."""
    return fmt.detectors() if fmt.detectors is not None else ()


def has_commands(fmt: Format) -> bool:
    """Return whether a format has commands, without importing them."""
    from logreel.registry.commands import COMMANDS

    return fmt.commands is not None or any(name.startswith(f"{fmt.name}.") for name in COMMANDS.added_names)


def commands_of(fmt: Format) -> tuple[Command, ...]:
    """Return the commands of a format, its own first; they are imported by this call."""
    from logreel.registry.commands import COMMANDS

    own = fmt.commands() if fmt.commands is not None else ()
    taken = {command.name for command in own}
    added = [command for name, command in COMMANDS.added().items() if name == f"{fmt.name}.{command.name}"]
    return (*own, *(command for command in added if command.name not in taken))


def storage_of(log: Log) -> Storage | None:
    """Return how the records of the format of *log* lie in files; None if the format does not say it."""
    fmt = format_named(log.format)
    return fmt.storage() if fmt is not None and fmt.storage is not None else None


def states_of(log: Log) -> Mapping[str, Mapping[str, Mapping[int, str]]]:
    """Return names of the numbers that fields of *log* hold, by topic, path and number; empty if there are none."""
    fmt = format_named(log.format)
    return fmt.states(log) if fmt is not None and fmt.states is not None else {}


def layout_by_format(schema: Schema, topic: str) -> Layout | None:
    """Return the Layout of messages whose schema is in the language of a format; None if none defines them."""
    fmt = format_named(schema.encoding)
    return None if fmt is None or fmt.layout is None else fmt.layout(schema, topic)


def lazy_scan(place: str) -> Callable[[Source, Saved | None], Scan | None]:
    """Return a ``Format.scan`` that calls ``module:name`` with the Source; it restores no saved scan."""
    read = Lazy(place)

    def scan(source: Source, saved: Saved | None) -> Scan | None:
        found: Scan | None = read(source) if saved is None else None
        return found

    return scan


def _sniffed(source: Source) -> Format | None:
    # Formats that the first bytes do not point to are not imported if they do not have to be.
    begins = importlib.import_module(GROUP).BEGINS.items()
    for name in [name for name, (at, mark) in begins if source.head.startswith(mark, at)]:
        if (fmt := FORMATS.get(name)) is not None and fmt.sniff(source):
            return fmt
    for fmt in FORMATS.own().values():
        if fmt.sniff(source):
            return fmt
    for fmt in FORMATS.added().values():
        try:
            if fmt.sniff(source):
                return fmt
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            FORMATS.warn(fmt.name, f"looking at {source.name} it failed with {error!r}")
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
