"""All known formats, and detection of the format of a file by its content, never by suffix alone."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from logreel.dataclass import dataclass
from logreel.errors import LogError, UnknownFormatError, UnsupportedError, UsageError, listeners, notice
from logreel.registry import entry_points_seen
from logreel.registry.format import Format

if TYPE_CHECKING:
    import inspect

    from logreel.io.source import Readable, Source
    from logreel.layout.layout import Layout
    from logreel.lenses.facts import Band, Chart, Detector, Section
    from logreel.limits import Limits
    from logreel.log.log import Log, Message
    from logreel.log.scan import Saved, Scan, Schema
    from logreel.registry.commands import Command
    from logreel.registry.format import Storage


T = TypeVar("T")
#: Suffix of the index of a log, next to it or in the cache folder.
INDEX_SUFFIX = ".logreel-index"
#: Indices of smaller logs are not kept in the cache folder: scanning them takes no noticeable time.
WORTH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Lazy:
    """A function that is imported when it is called, or its signature is asked for.

    place  ``module:name`` of the function or class
    """

    place: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.load()(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect

        return inspect.signature(self.load())

    def load(self) -> Any:
        """Return what the place names; a place without a name is the module."""
        module, _, name = self.place.partition(":")
        owner = importlib.import_module(module)
        return getattr(owner, name) if name else owner


def lazy(place: str) -> Lazy:
    """Return a function that imports and calls ``module:name``, so that unused formats are not imported."""
    return Lazy(place)


def lazy_value(place: str) -> Callable[[], Any]:
    """Return a function that imports and returns what ``module:name`` names, or ``module`` itself."""
    return Lazy(place).load


class Registry(Generic[T]):
    """Entries of one sort by name. Those of other packages never replace an entry of logreel.

    title  word for an entry in messages
    group  group of the entry points of other packages
    own    entries of logreel by name; ``lazy("module:name")`` for one that is imported when it is asked for; or a
           function that returns them
    base   class of all entries, or where it is
    key    returns the name of an entry of another package; None: the name of its entry point
    """

    def __init__(
        self,
        title: str,
        group: str,
        own: Mapping[str, T | Lazy] | Callable[[], Mapping[str, T | Lazy]],
        base: type[T] | Lazy | None = None,
        key: Callable[[T], str] | None = None,
    ) -> None:
        self.title, self.group = title, group
        self._make_own, self._base, self._key = own, base, key

    @cached_property
    def _own(self) -> Mapping[str, T | Lazy]:
        return self._make_own() if callable(self._make_own) else self._make_own

    def names(self) -> list[str]:
        """Return the names of all entries, those of logreel first; of other packages, the names of entry points."""
        return list(dict.fromkeys([*self._own, *sorted(self.added_names)]))

    @cached_property
    def added_names(self) -> frozenset[str]:
        """Names of entry points of other packages; looking reads a file of each package of the environment."""
        return frozenset(point.name for point in self._points())

    def own(self) -> dict[str, T]:
        """Return the entries of logreel by name."""
        return {name: self._loaded(entry) for name, entry in self._own.items()}

    @cached_property
    def _added(self) -> dict[str, T]:
        entries: dict[str, T] = {}
        for point in self._points():
            try:
                entry = point.load()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # Also SystemExit: a module that is a program, too, may end it when it is imported.
                self.warn(point.name, f"it cannot be loaded: {error!r}")
                continue
            base = self._base.load() if isinstance(self._base, Lazy) else self._base
            if base is not None and not isinstance(entry, base):
                self.warn(point.name, f"{point.value} is no {base.__name__}")
                continue
            name = point.name if self._key is None else self._key(entry)
            if name not in self._own:
                entries[name] = entry
        return entries

    def added(self) -> Mapping[str, T]:
        """Return the entries of other packages by name; broken ones are told once and left out."""
        return self._added

    def all(self) -> dict[str, T]:
        """Return all entries by name, those of logreel first; broken ones of other packages are told and left out."""
        return {**self.own(), **self.added()}

    def get(self, name: str) -> T | None:
        """Return the entry called *name*, or None; other packages are only looked at for a name that logreel lacks."""
        return self._loaded(self._own[name]) if name in self._own else self.added().get(name)

    def load(self, name: str) -> T | None:
        """Return the entry called *name*, or None; raises LogError if that of another package cannot be loaded."""
        if name in self._own:
            return self._loaded(self._own[name])
        for point in self._points():
            if point.name != name:
                continue
            try:
                return cast("T", point.load())
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                # Also SystemExit, which would end the program without a word.
                raise LogError(f"the {self.title} plug-in {name!r} cannot be loaded: {error!r}") from error
        return None

    def warn(self, name: str, why: str) -> None:
        """Tell that an entry of another package is left out: it must not prevent the use of others."""
        text = f"{self.title} plug-in {name!r} is left out: {why}"
        if listeners:
            notice(text)
        else:
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def leave_out(self, name: str, why: str) -> None:
        """Tell that the entry *name* of another package failed, and do not use it any more."""
        self.warn(name, why)
        self._added.pop(name, None)

    def forget(self) -> None:
        """Look at the entry points of other packages again when they are next needed."""
        for name in ("_added", "added_names"):
            self.__dict__.pop(name, None)

    def _points(self) -> Iterable[Any]:
        seen = entry_points_seen()
        if seen is not None and self.group not in seen:
            return ()
        from importlib import metadata

        return metadata.entry_points(group=self.group)

    def _loaded(self, entry: T | Lazy) -> T:
        return cast("T", entry.load()) if isinstance(entry, Lazy) else entry


def check_options(owner: str, known: Collection[str], options: Iterable[str]) -> None:
    """Raise UsageError for the first of *options* that is not *known*; *owner* is what has the options."""
    for option in options:
        if option not in known:
            names = ", ".join(known) or "none at all"
            raise UsageError(f"{owner} has no option {option!r}; it has: {names}")


GROUP = "logreel.formats"


def _builtin_formats() -> dict[str, Format | Lazy]:
    """Return where the built-in formats are: each folder below ``logreel.formats``, by name."""
    package = importlib.import_module(GROUP)
    folders = [entry for place in package.__path__ for entry in os.scandir(place) if entry.is_dir()]
    names = sorted(folder.name for folder in folders if folder.name[0] not in "_.")
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


def sentence_of(log: Log, text: str) -> str:
    """Return a line of text of *log* without what its format says that senders write before their words."""
    fmt = format_named(log.format)
    return text if fmt is None else fmt.sentence(text)


def detectors_of(log: Log) -> Sequence[Detector]:
    """Return the detectors that the format of *log* offers."""
    fmt = format_named(log.format)
    return detectors_of_format(fmt) if fmt is not None else ()


def detectors_of_format(fmt: Format) -> Sequence[Detector]:
    """Return the detectors that a format offers."""
    return fmt.detectors() if fmt.detectors is not None else ()


#: Commands that other packages add to formats, by ``FORMAT.COMMAND``.
COMMANDS: Registry[Command] = Registry(
    "command", "logreel.commands", {}, lazy("logreel.registry.commands:Command")
)


def has_commands(fmt: Format) -> bool:
    """Return whether a format has commands, without importing them."""
    return fmt.commands is not None or any(name.startswith(f"{fmt.name}.") for name in COMMANDS.added_names)


def commands_of(fmt: Format) -> tuple[Command, ...]:
    """Return the commands of a format, its own first; they are imported by this call."""
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


def is_worth_an_index(source: Source) -> bool:
    """Return whether the scan of a log is kept in the cache folder."""
    return source.size >= WORTH_BYTES


def may_have_index(source: Source) -> bool:
    """Return whether an index of a log can be next to it or in the cache folder."""
    if source.file is None:
        return False
    return is_worth_an_index(source) or os.path.exists(f"{source.file}{INDEX_SUFFIX}")


def open_source(what: Readable | Source, guard: bool = True, limits: Limits | None = None) -> Source:
    """Return a Source of *what*: what ``Source.open`` takes, or an address such as ``s3://bucket/key``.

    Of a file that is packed as a whole by zstd, it is that of the content, in a temporary file.

    limits  of a remote log; None: those of the environment

    Raises LogError for an address that cannot be read, MissingDependencyError without obstore.
    """
    from logreel.io.source import ZSTD, Source, is_url

    text = os.fspath(what) if isinstance(what, (str, os.PathLike)) else None
    if not is_url(text):
        source = Source.open(what, guard)
        if not source.head.startswith(ZSTD):
            return source
        from logreel.io.packed_file import unpacked

        return unpacked(source, limits or source.limits)
    # Only for addresses, since it loads obstore.
    from logreel.io.remote.remote_source import RemoteSource

    return RemoteSource(str(text), limits)


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
