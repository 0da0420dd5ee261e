"""Open a log: find its format, scan it or load its cached index, and return a Log."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from logreel.dataclass import replace
from logreel.errors import (
    CHANGED,
    DamagedError,
    LogError,
    Problem,
    TopicError,
    UnknownFormatError,
    UsageError,
)
from logreel.io.platform import pool
from logreel.io.source import Definitions, Readable, Source, is_url
from logreel.limits import Limits, default_limits
from logreel.log.log import Log
from logreel.log.scan import Growing, Scan, Services, TextLine
from logreel.registry.format import Folder, Format
from logreel.registry.registry import find_format, formats, is_worth_an_index, may_have_index, open_source

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel


def expand(names: Sequence[str]) -> list[str]:
    """Return *names* with each folder replaced by the logs in and below it, and each pattern by the files it matches.

    An address that ends with a slash means the logs below it.

    Hidden files are ignored, and so are files that no format recognises, unless only one format has their suffix.
    A folder without logs and a pattern without files stay in the list: opening them is an error.
    """
    return [path for name in names for path in (_logs_of(name) or (name,))]


def _logs_of(name: str) -> list[str]:
    """Return the logs that a folder, a pattern or an address of a prefix means; nothing if *name* is none of these."""
    if is_url(name):
        return _remote_logs(name)
    return list(_logs_below(name)) if os.path.isdir(name) else matches(name)


def log_folder(name: str) -> Folder | None:
    """Return the Folder that a path is if a format takes it for one log, else None."""
    if is_url(name) or not os.path.isdir(name):
        return None
    names = os.listdir(name)
    folders = (fmt.folder(name, names) for fmt in formats().values() if fmt.folder is not None)
    return next((folder for folder in folders if folder is not None), None)


def matches(name: str) -> list[str]:
    """Return the files that the pattern *name* matches, in natural order; nothing if it is no pattern."""
    if not is_pattern(name):
        return []
    import glob

    from logreel.log.part_checks import natural_key

    paths = (path for path in glob.glob(name) if os.path.isfile(path) or log_folder(path) is not None)
    return sorted(paths, key=natural_key)


def is_pattern(name: str) -> bool:
    """Return whether *name* is a pattern such as ``*.bag``, and not the name of a file."""
    return not {*"*?["}.isdisjoint(name) and not os.path.lexists(name)


def one_file(name: str) -> str:
    """Return *name* if it can be one log; for a folder or a pattern, raise an error that says what to do.

    UnknownFormatError for a folder without logs, UsageError for a pattern without files, and for both of several logs.
    """
    if is_url(name):
        return name
    is_folder = os.path.isdir(name)
    if not is_folder and not is_pattern(name):
        return name
    files = _logs_of(name)
    if files == [name]:
        return name
    if not files and is_folder:
        raise UnknownFormatError("a folder with no log of a known format in or below it", path=name)
    if not files:
        raise UsageError("no file matches this pattern", path=name)
    count = f"{len(files)} logs" if len(files) > 1 else "one log"
    raise UsageError(
        f"a folder with {count}, and not a log"
        if is_folder
        else f"a pattern that matches {count}, and not a log",
        path=name,
        hint=f"open its files one by one, or as the parts of one recording with open([{name!r}])",
    )


def part_files(what: Openable) -> list[Readable | Log] | None:
    """Return the files of a list of parts, with those of folders and patterns in it; None for a single file.

    Raises UsageError for an empty list, and what ``one_file`` raises.
    """
    if isinstance(what, (list, tuple)):
        if not what:
            raise UsageError("there is no file to open")
        return [part for item in what for part in several_logs(item)]
    if isinstance(what, (str, os.PathLike)) and isinstance(name := os.fspath(what), str):
        one_file(name)
    return None


def several_logs(what: Openable | Log) -> list[Readable | Log]:
    """Return the logs that an argument means: those of a list, folder or pattern, or *what* itself."""
    if isinstance(what, (list, tuple)):
        return [log for item in what for log in several_logs(item)]
    if isinstance(what, (str, os.PathLike)) and isinstance(name := os.fspath(what), str):
        files = _logs_of(name)
        if files:
            return list(files)
        one_file(name)
    return [what]  # type: ignore[list-item]


def _remote_logs(url: str) -> list[str]:
    """Return the objects below a prefix with a suffix of a known format, in natural order."""
    from logreel.io.remote.object_store import is_prefix, objects_below
    from logreel.log.part_checks import natural_key
    from logreel.registry.registry import log_suffixes

    if not is_prefix(url):
        return []
    suffixes = log_suffixes()
    logs = (address for address in objects_below(url) if address.lower().endswith(suffixes))
    return sorted(logs, key=natural_key)


def _logs_below(root: str) -> Iterator[str]:
    """Yield the paths of the logs in and below a folder, in natural order; of a folder that is one log, its own."""
    from logreel.log.part_checks import natural_key

    counts = Counter(suffix for fmt in formats().values() for suffix in fmt.suffixes)
    own = tuple(suffix for suffix, count in counts.items() if count == 1)
    for folder, folders, files in os.walk(root):
        if log_folder(folder) is not None:
            folders.clear()
            yield folder
            continue
        folders[:] = sorted((name for name in folders if name[:1] != "."), key=natural_key)
        for name in sorted(files, key=natural_key):
            path = os.path.join(folder, name)
            if name[:1] != "." and os.path.isfile(path) and (name.lower().endswith(own) or _is_log(path)):
                yield path


def _is_log(path: str) -> bool:
    from logreel.registry.registry import find_format

    try:
        find_format(Source.open(path))
    except (LogError, OSError):
        return False
    return True


class Rescanner:
    """Scans the growing file of one log.

    format   name of the format; None: detected
    segment, ros_axes  as for ``open_log``
    """

    def __init__(self, format: str | None, segment: int | None, ros_axes: bool) -> None:
        self._name, self._segment, self._ros_axes = format, segment, ros_axes
        self._format: Format | None = None
        self._growing: Growing | None = None

    def scan(self, source: Source, is_other: bool, is_final: bool) -> tuple[str, Scan]:
        """Return the name of the format, and the Scan of *source*.

        is_other  True: another file than before, or one that was truncated; False: the same file, with more bytes
        is_final  True: the file will not grow, so the end is read as by opening it

        Raises LogError if the bytes so far cannot be scanned.
        """
        if is_other or self._format is None:
            self._format = find_format(source, self._name)
            self._growing = None if self._format.follow is None else self._format.follow()
        scan = None if self._growing is None or is_final else self._growing.extend(source)
        if scan is None:
            scan = self._format.scan(source, None)
        if scan is None:
            raise LogError("cannot be scanned yet", path=source.name)
        if self._segment is not None and scan.segment is not None:
            scan = scan.segment(self._segment)
        if self._ros_axes and scan.ros_axes is not None:
            scan = replace(scan, channels=scan.ros_axes(), ros_axes=None)
        return self._format.name, scan


def open_log(
    path: Openable,
    *,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
    align: str | None = None,
    anyway: bool = False,
    guard: bool = True,
    limits: Limits | None = None,
    decrypt: bool = False,
) -> Log:
    """Open a log of any known format.

    path         a path, an address such as ``s3://bucket/key``, ``-`` for standard input, bytes, or a binary file
                 object; or a list of these, which are the parts of one recording; in a list, a pattern such as
                 ``flight_*.bag`` and a folder mean the logs that they name
    format       name of the format; None: detected from the content
    strict       True: raise DamagedError for the first Problem instead of recording it
    definitions  files or folders with message definitions (.msg …), for logs that do not contain them; also mappings of
                 topics to types, for logs that do not contain these. Logs written from this one contain those used
    ros_axes     True: in metres and right-handed axes, see ``Log.ros_axes``
    segment      number of one of several logs in the file, see ``Log.segments``; None: all of them; channels of later
                 ones then have distinct names
    align        of several files: how the clocks of all but the first are shifted, as for ``logreel.merge``
    anyway       True: join several files although they tell that they are of different recordings; the metadata
                 ``joined_anyway`` and Problems say by what
    guard        False: leave the signal SIGBUS to the program; a file that is truncated while it is open then ends the
                 process where True raises FileChangedError
    limits       bounds of what the log may use, see ``logreel.Limits``; None: those of the environment
    decrypt      True: what is written from an encrypted log (slices, tables, pictures …) may be plain; False: functions
                 that write raise UsageError. Reading needs no permission, only the key

    Files are refused as parts of one recording if what they say about robot, machine or run differs (see
    ``Format.identity``), their clocks began at different times or began anew, or a topic has different definitions.
    Then they are one log with the channels of all, ordered by their start. Channels with the same topic and
    definition are one channel; with different definitions, further ones get another name, such as ``topic[1]``. Rows of
    channels are in the order of the files, or by time if files overlap in time. Metadata, parameters and attachments
    are those of the first file that has them. Overlaps, duplicates, missing files and different clocks are recorded as
    Problems; a file given twice counts once.

    Raises UnknownFormatError, UnsupportedError; OSError if a file cannot be read; FileChangedError, now and by whatever
    reads messages later, if a file is truncated or overwritten meanwhile, or an object on a server replaced; TopicError
    for the type of an unknown topic; UsageError for a type that contradicts the log, for files of different formats,
    recordings without *anyway*, or kinds of clocks without *align*, and for a folder or a pattern alone: its files are
    logs of their own.
    """
    log = open_one_of_several(
        path,
        align,
        anyway,
        decrypt,
        format=format,
        strict=strict,
        definitions=definitions,
        ros_axes=ros_axes,
        segment=segment,
        guard=guard,
        limits=limits,
    )
    check_types(log.parts)
    return log


class Opening(TypedDict, total=False):
    """How a file is opened: parameters of ``open_log``, and *indexed*: False to read the log itself, not a sidecar."""

    format: str | None
    strict: bool
    definitions: Definitions
    ros_axes: bool
    segment: int | None
    guard: bool
    limits: Limits | None
    indexed: bool


def open_one_of_several(
    path: Openable,
    align: str | None = None,
    anyway: bool = False,
    decrypt: bool = False,
    **opening: Unpack[Opening],
) -> Log:
    """Open a log like ``open_log``; *definitions* may contain types of topics that only other logs contain."""
    parts = part_files(path)
    if parts is None:
        log = _open_file(path, **opening)  # type: ignore[arg-type]
        return _allow_decrypted(log) if decrypt else log
    # Not imported for one file, so that it opens faster.
    from logreel.registry.open_parts import open_parts

    log = open_parts(parts, partial(_open_file, **opening), align, anyway)
    if log.parts[0] is not log:
        again = {name: value for name, value in opening.items() if name != "indexed"}
        log.options = {**again, "align": align, "anyway": anyway}
    if decrypt:
        log = _allow_decrypted(log)
    if opening.get("strict") and log.problems:
        raise DamagedError(log.problems[0], path=log.name)
    return log


def _allow_decrypted(log: Log) -> Log:
    # Not imported for logs that nobody said this of.
    from logreel.log.source_files import allow_decrypted

    return allow_decrypted(log)


def _open_file(
    path: Readable,
    format: str | None = None,
    strict: bool = False,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
    guard: bool = True,
    indexed: bool = True,
    limits: Limits | None = None,
) -> Log:
    if isinstance(path, (str, os.PathLike)) and isinstance(name := os.fspath(path), str):
        folder = log_folder(name)
        if folder is not None:
            opening: Opening = {
                "format": format,
                "strict": strict,
                "definitions": definitions,
                "limits": limits,
            }
            opening |= {"ros_axes": ros_axes, "segment": segment, "guard": guard, "indexed": indexed}
            return _open_folder(name, folder, opening)
    source = open_source(path, guard, limits)
    if limits is not None:
        source.limits = limits
    with source.checked():
        if source.in_ranges and (strict or not indexed):
            # The summary of a remote log says nothing about damage elsewhere.
            _ = source.data
        # An index file has what other limits left out.
        indexed = indexed and source.limits == Limits()
        return _open_source(source, format, strict, definitions, ros_axes, segment, indexed)


def _open_folder(name: str, folder: Folder, opening: Opening) -> Log:
    """Return the log that a folder is, of one part or several."""
    from logreel.registry.open_parts import join

    parts, problems = list[Log](), [*folder.problems]
    for number, path in enumerate(folder.parts):
        try:
            parts.append(_open_file(path, **opening))
        except LogError as error:
            # One part that nothing reads must not cost the others.
            if not parts and number + 1 == len(folder.parts):
                raise
            size = 0
            with suppress(OSError):
                size = os.path.getsize(path)
            problems.append(Problem("part", 0, max(1, size), True, f"a part is not read: {error}", file=path))
    log = parts[0]
    if len(parts) > 1:
        log = join(parts, None, formats())
        log.options = dict(parts[0].options)
    else:
        log.source.address = os.path.abspath(name)
    stated = log.scan.metadata
    log.scan.metadata = lambda: merged_metadata(stated(), folder.metadata)
    log.scan.problems[:0] = problems
    log.name = name
    if opening.get("strict") and log.problems:
        raise DamagedError(log.problems[0], path=name)
    return log


def merged_metadata(metadata: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with *more*; mappings that both have are one."""
    both = {
        key: {**metadata[key], **value}
        if isinstance(metadata.get(key), Mapping) and isinstance(value, Mapping)
        else value
        for key, value in more.items()
    }
    return {**metadata, **both}


def _open_source(
    source: Source,
    format: str | None,
    strict: bool,
    definitions: Definitions,
    ros_axes: bool,
    segment: int | None,
    indexed: bool,
) -> Log:
    source.define(definitions)
    fmt = find_format(source, format)
    scan = None
    if indexed and may_have_index(source):
        from logreel.registry import index_cache

        scan = index_cache.load(source, fmt)
    if scan is None:
        scan = _scan_from_start(source, fmt)
        scan.problems[:0] = source.damage
        # What other limits left out must not be missing for all.
        if is_worth_an_index(source) and source.limits == Limits():
            from logreel.registry import index_cache

            scan = index_cache.keep(source, fmt, scan)
    # A summary was read instead of the log.
    source.is_restored |= source.in_ranges
    log = log_of(source, fmt, scan)
    log.options |= {"format": format, "strict": strict, "guard": source.guard}
    if source.limits != default_limits():
        log.options["limits"] = source.limits
    if segment is not None:
        log = log.segment(segment)
    if strict:
        # Parts of the index of a large log are read lazily: read all of them now.
        _ = log.index.table.counts
    if strict and log.problems:
        raise DamagedError(log.problems[0], path=source.name)
    log = log.ros_axes() if ros_axes else log
    log.rescan = Rescanner(format, segment, ros_axes).scan
    return log


def check_types(logs: Sequence[Log]) -> None:
    """Raise an error for a type given by the user that fits no channel of *logs*.

    TopicError for a topic that no log has, UsageError for a topic whose log contains another type.
    """
    for log in logs:
        for topic, kind in log.given_types.items():
            found = [one[topic].schema.name for one in logs if topic in one]
            if not found:
                raise TopicError(
                    "channel", topic, {name: None for one in logs for name in one}, path=log.name
                )
            if kind not in found:
                reason = f"channel {topic!r} has type {found[0]!r}, which {kind!r:.80} cannot replace"
                raise UsageError(f"{reason}: types are given for channels of ROS 1", path=log.name)


def log_of(source: Source, fmt: Format, scan: Scan) -> Log:
    """Return a Log of *scan*; lenses give names to the meanings of channels, and text if the format does not."""
    return Log(source, fmt.name, scan, SERVICES)


def reopen(path: str | list[str], name: str, options: dict[str, Any]) -> Log:
    """Return a log opened again in another process, under its original name."""
    log = open_log(path, **options)
    log.name = name
    return log


def _text_lines(log: Log) -> Iterable[TextLine]:
    from logreel.lenses import text_lines

    return text_lines(log)


def _lens_names(ch: Channel) -> Iterable[str]:
    from logreel.lenses import lens_names

    return lens_names(ch)


def _verb(name: str) -> Any:
    return getattr(import_module(__name__.partition(".")[0]), name)


#: What methods of all open logs call; what stands above is imported when it is called, by its public name.
SERVICES = Services(_text_lines, _lens_names, _verb, reopen)


def _scan_from_start(source: Source, fmt: Format) -> Scan:
    scan = fmt.scan(source, None)
    if scan is None:
        raise TypeError(f"format {fmt.name} gave no scan")
    return scan


def open_many(
    several: Iterable[Openable | Log],
    stack: ExitStack,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
    decrypt: bool = False,
    *,
    parts: bool = False,
    anyway: bool = False,
) -> list[Log]:
    """Return each log as an open Log; open those that are not open yet in parallel, and close them with *stack*.

    Each file of a list, a folder or a pattern is a log of its own.

    definitions, ros_axes, segment, decrypt  as for ``logreel.open``, for the logs opened here; each topic that
                 *definitions* gives a type for has to be in one of the logs
    parts        True: each item is one log, and a list the parts of one recording; with *anyway* as for
                 ``logreel.open``
    """
    open_one = partial(
        open_one_of_several,
        definitions=definitions,
        ros_axes=ros_axes,
        segment=segment,
        decrypt=decrypt,
        anyway=anyway,
    )
    several = list(several) if parts else [log for one in several for log in several_logs(one)]
    if definitions and all(isinstance(what, Log) for what in several):
        raise UsageError("the logs are open already: give their definitions to logreel.open")
    from concurrent.futures import Future

    with pool(os.cpu_count() or 1) as threads:
        coming = [what if isinstance(what, Log) else threads.submit(open_one, what) for what in several]
    logs = []
    for one in coming:
        if isinstance(one, Log):
            logs.append(one)
        elif one.exception() is None:
            logs.append(stack.enter_context(one.result()))
    for one in coming:
        if isinstance(one, Future):
            one.result()
    check_types(logs)
    return logs


def read_itself(log: Log, also_remote: bool = True) -> Log:
    """Return *log* as the file itself says, where an index cache was read instead of it; else *log*.

    also_remote  False: a remote log of which only the summary was read is left as it is

    For functions that judge a log, or write its messages to another: an index cache may be older than damage of the
    log, or forged. Damage that the index did not know is added to the problems of *log*, too.
    """
    sources = [part.source for part in log.parts]
    if not any(source.is_restored and (also_remote or not source.in_ranges) for source in sources):
        return log
    options = {name: value for name, value in log.options.items() if name != "guard"}
    one_or_all = sources[0] if log.parts[0] is log else sources
    fresh = open_one_of_several(one_or_all, **options, indexed=False)  # type: ignore[arg-type]
    for part in fresh.parts:
        for known, source in zip(log.parts, sources, strict=True):
            if source is part.source:
                more = [
                    problem for problem in part.problems if problem.lost and problem not in known.problems
                ]
                for problem in [*more, CHANGED] if more else []:
                    known.note(problem)
    return fresh


@contextmanager
def as_open_log(what: Openable | Log, definitions: Definitions = (), decrypt: bool = False) -> Iterator[Log]:
    """Return *what* as an open Log, which is closed at the end if it was opened here.

    definitions, decrypt  as for ``logreel.open``
    """
    if isinstance(what, Log):
        if definitions:
            raise UsageError("the log is open already: give its definitions to logreel.open", path=what.name)
        yield what
    else:
        with open_log(what, definitions=definitions, decrypt=decrypt) as log:
            yield log


@contextmanager
def as_log_to_copy(what: Openable | Log, definitions: Definitions = ()) -> Iterator[Log]:
    """Return the same as ``as_open_log``, read from the log itself and not from an index cache.

    For functions that copy messages: what they write has to be what the log holds now.
    """
    with as_open_log(what, definitions) as log:
        yield read_itself(log, also_remote=False)
