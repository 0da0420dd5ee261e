"""Run detectors of faults on a log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from logreel.dataclass import dataclass, replace
from logreel.errors import SEVERITIES, LogError, Severity, UsageError
from logreel.lenses.facts import Detection, Detector, NotAssessed
from logreel.log.log import Log
from logreel.log.scan import Block, Tabular
from logreel.log.times import Time, interval
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log
from logreel.registry.registry import Registry, detectors_of, detectors_of_format, formats, lazy

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Detectors for logs of all formats; packages add others by the entry point ``logreel.detectors``, formats by
#: ``Format.detectors``.
DETECTORS: Registry[Detector] = Registry(
    "detector",
    "logreel.detectors",
    {
        "silent-sensor": lazy("logreel.ops.health.detectors:SILENT"),
        "gaps": lazy("logreel.ops.health.detectors:GAPS"),
        "rate-drop": lazy("logreel.ops.health.detectors:RATE_DROP"),
        "stuck-sensor": lazy("logreel.ops.health.detectors:STUCK"),
        "position-jumps": lazy("logreel.ops.health.detectors:JUMPS"),
        "frozen-camera": lazy("logreel.ops.health.detectors:FROZEN"),
        "clock": lazy("logreel.ops.health.detectors:CLOCK"),
        "message-loss": lazy("logreel.ops.health.detectors:LOSS"),
        "transforms": lazy("logreel.ops.health.detectors:LINKS"),
    },
)


@dataclass(frozen=True, slots=True, repr=False)
class Health(Tabular):
    """What the detectors found in one log.

    start_ns, end_ns  ns of the log's clock; None if it is empty
    segment       number of the log in a file with several, if one was chosen
    detections    most severe first, then by time
    clean         name and subject of the detectors that looked and found nothing
    not_assessed  name and reason of the detectors that could not look, or not at everything
    failed        name and error of the detectors that ended with an error of their own; the others have looked
    """

    path: str
    format: str
    start_ns: int | None
    end_ns: int | None
    segment: int | None
    detections: tuple[Detection, ...]
    clean: tuple[tuple[str, str], ...]
    not_assessed: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...] = ()

    def worse(self, severity: Severity) -> list[Detection]:
        """Return the detections of at least *severity*."""
        return [detection for detection in self.detections if _rank(detection.severity) <= _rank(severity)]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``health --json``."""
        return {
            "path": self.path,
            "format": self.format,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "segment": self.segment,
            "detections": [detection.as_dict() for detection in self.detections],
            "clean": [{"detector": name, "looks_at": text} for name, text in self.clean],
            "not_assessed": [{"detector": name, "reason": text} for name, text in self.not_assessed],
            "failed": [{"detector": name, "error": text} for name, text in self.failed],
        }

    def _blocks(self) -> Iterator[Block]:
        rows = [
            (detection.severity, detection.detector, detection.text, detection.threshold)
            for detection in self.detections
        ]
        head = ("severity", "detector", "finding", "bound")
        yield Block(self.path if rows else f"{self.path}: nothing found", head if rows else (), rows)
        for title, others in (
            ("looked, and found nothing", self.clean),
            ("not assessed", self.not_assessed),
            ("failed", self.failed),
        ):
            if others:
                yield Block(title, (), others)


def _rank(severity: Severity) -> int:
    """Return 0 for the worst severity."""
    return SEVERITIES.index(severity)


def known_detectors(log: Log | None = None) -> list[Detector]:
    """Return the detectors of all formats and of plug-ins, and those of the format of *log*."""
    entries: list[object] = [DETECTORS.load(name) for name in DETECTORS.names()]
    detectors = [entry for entry in entries if isinstance(entry, Detector)]
    return [*detectors, *(detectors_of(log) if log is not None else ())]


def detector_names() -> dict[str, tuple[str, ...]]:
    """Return the names of all detectors, each with the formats whose logs it is for; empty for all formats."""
    formats_by_name: dict[str, tuple[str, ...]] = {detector.name: () for detector in known_detectors()}
    for fmt in formats().values():
        for detector in detectors_of_format(fmt):
            formats_by_name[detector.name] = (*formats_by_name.get(detector.name, ()), fmt.name)
    return formats_by_name


def chosen_detectors(patterns: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names in *known* that are, or match, the given ones; raises UsageError for one that none matches."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        names = [name for name in known if fnmatchcase(name, pattern)]
        if not names:
            near = get_close_matches(pattern, known, n=1, cutoff=0.4)
            hint = f"nearest: {near[0]}" if near else f"there are: {', '.join(known)}"
            raise UsageError(f"no detector {pattern!r}; {hint}")
        chosen |= dict.fromkeys(names)
    return list(chosen)


def health(
    what: Openable | Log,
    detectors: str | Iterable[str] | None = None,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    segment: int | None = None,
    definitions: Definitions = (),
) -> Health:
    """Look for faults of the robot in a log.

    what       an open Log, or anything that ``logreel.open`` takes
    detectors  names of detectors to run, or patterns such as ``*-sensor``; None: all
    topics, exclude, where  look only at messages that ``slice`` would copy for these
    start, end  tell only findings that touch this interval; detectors look at the whole log
    segment    number of one log of a file with several
    definitions  as for ``logreel.open``

    Raises UsageError for an unknown detector. One for logs of another format, and one that meets messages that cannot
    be decoded, count as not assessed; one that raises any other error is in ``failed`` and costs its own result only.
    """
    selection = Selection(topics, exclude, None, None, where, segment)
    with as_open_log(what, definitions) as opened, selected_log(opened, selection) as log:
        first, last = interval(opened if segment is None else opened.segment(segment), start, end)
        findings: list[Detection] = []
        clean: list[tuple[str, str]] = []
        missing: list[tuple[str, str]] = []
        failed: list[tuple[str, str]] = []
        for detector in _chosen(log, detectors):
            try:
                results = _results(detector, log)
            except Exception as error:
                # Detectors of other packages may raise anything.
                failed.append((detector.name, f"{type(error).__name__}: {error}"))
                continue
            reasons = [result.reason for result in results if isinstance(result, NotAssessed)]
            # Detectors see all of the log, since its beginning and end mean something: an interval chooses findings.
            detected = [r for r in results if isinstance(r, Detection) and _touches(r, first, last)]
            findings += [replace(result, detector=detector.name) for result in detected]
            if reasons:
                missing.append((detector.name, reasons[0]))
            elif not detected:
                clean.append((detector.name, detector.looks_at))
        findings.sort(key=lambda result: (_rank(result.severity), result.start))
        return Health(
            log.name,
            log.format,
            log.start,
            log.end,
            segment,
            tuple(findings),
            tuple(clean),
            tuple(missing),
            tuple(failed),
        )


def _results(detector: Detector, log: Log) -> list[Detection | NotAssessed]:
    """Return what a detector yields, or why it could not look."""
    if log.start is None:
        return [NotAssessed("the log is empty")]
    try:
        return list(detector.detect(log))
    except LogError as error:
        return [NotAssessed(error.text)]


def _touches(detection: Detection, first: int | None, last: int | None) -> bool:
    return (first is None or detection.end >= first) and (last is None or detection.start < last)


def _chosen(log: Log, names: str | Iterable[str] | None) -> list[Detector]:
    known = {detector.name: detector for detector in known_detectors(log)}
    if names is None:
        return list(known.values())
    wanted = [names] if isinstance(names, str) else list(names)
    every = detector_names() if any(name not in known for name in wanted) else dict.fromkeys(known, ())
    try:
        chosen = chosen_detectors(wanted, every)
    except UsageError as error:
        raise UsageError(error.text, path=log.name) from None
    return [known.get(name) or _foreign(name, every[name]) for name in chosen]


def _foreign(name: str, formats: tuple[str, ...]) -> Detector:
    """Return a detector that states that it is for logs of other formats."""
    reason = f"it is for logs of the format {' or '.join(formats)}"
    return Detector(name, reason, lambda log: [NotAssessed(reason)])
