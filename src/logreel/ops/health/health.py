"""Run detectors of faults on a log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from logreel.errors import SEVERITIES, LogError, Severity, UsageError
from logreel.lenses.detection import Detection, Detector, NotAssessed
from logreel.log.brief import Brief
from logreel.log.log import Log
from logreel.ops.open_logs import as_open_log
from logreel.registry.plugins import Plugins
from logreel.registry.registry import detectors_of

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Detectors for logs of all formats; packages add others by the entry point ``logreel.detectors``, formats by
#: ``Format.detectors``.
DETECTORS = Plugins(
    "detector",
    "logreel.detectors",
    {
        "silent-sensor": ("logreel.ops.health.silent", "SILENT"),
        "gaps": ("logreel.ops.health.rates", "GAPS"),
        "rate-drop": ("logreel.ops.health.rates", "RATE_DROP"),
        "stuck-sensor": ("logreel.ops.health.stuck", "STUCK"),
        "frozen-camera": ("logreel.ops.health.frozen", "FROZEN"),
        "clock": ("logreel.ops.health.clock", "CLOCK"),
        "message-loss": ("logreel.ops.health.sequence", "LOSS"),
        "transforms": ("logreel.ops.health.links", "LINKS"),
    },
)


@dataclass(frozen=True, slots=True, repr=False)
class Health(Brief):
    """What the detectors found in one log.

    detections    most severe first, then by time
    clean         name and subject of the detectors that looked and found nothing
    not_assessed  name and reason of the detectors that could not look
    """

    path: str
    format: str
    start_ns: int | None
    detections: tuple[Detection, ...]
    clean: tuple[tuple[str, str], ...]
    not_assessed: tuple[tuple[str, str], ...]

    def worse(self, severity: Severity) -> list[Detection]:
        """Return the detections of at least *severity*."""
        return [one for one in self.detections if _rank(one.severity) >= _rank(severity)]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``health --json``."""
        return {
            "path": self.path,
            "format": self.format,
            "start_ns": self.start_ns,
            "detections": [one.as_dict() for one in self.detections],
            "clean": [{"detector": name, "looks_at": text} for name, text in self.clean],
            "not_assessed": [{"detector": name, "reason": text} for name, text in self.not_assessed],
        }


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def known_detectors(log: Log | None = None) -> list[Detector]:
    """Return the detectors of all formats and of plug-ins, and those of the format of *log*."""
    found: list[Detector] = []
    for name in DETECTORS.names():
        one: object = DETECTORS.load(name)
        if isinstance(one, Detector):
            found.append(one)
    return [*found, *(detectors_of(log) if log is not None else ())]


def health(
    what: Openable | Log,
    detectors: str | Iterable[str] | None = None,
    *,
    segment: int | None = None,
    definitions: Definitions = (),
) -> Health:
    """Look for faults of the robot in a log.

    what       an open Log, or anything that ``logreel.open`` takes
    detectors  names of detectors to run; None: all
    segment    number of one log of a file with several
    definitions  as for ``logreel.open``

    Raises UsageError for an unknown detector. A detector that meets messages that cannot be decoded counts as not
    assessed.
    """
    with as_open_log(what, definitions) as whole:
        log = whole if segment is None else whole.segment(segment)
        found: list[Detection] = []
        clean: list[tuple[str, str]] = []
        missing: list[tuple[str, str]] = []
        for detector in _chosen(log, detectors):
            try:
                results = (
                    list(detector.detect(log)) if log.start is not None else [NotAssessed("the log is empty")]
                )
            except LogError as error:
                results = [NotAssessed(error.text)]
            reasons = [one.reason for one in results if isinstance(one, NotAssessed)]
            detected = [one for one in results if isinstance(one, Detection)]
            if detected:
                found += [replace(one, detector=detector.name) for one in detected]
            elif reasons:
                missing.append((detector.name, reasons[0]))
            else:
                clean.append((detector.name, detector.looks_at))
        found.sort(key=lambda one: (-_rank(one.severity), one.start))
        return Health(log.name, log.format, log.start, tuple(found), tuple(clean), tuple(missing))


def _chosen(log: Log, names: str | Iterable[str] | None) -> list[Detector]:
    known = {detector.name: detector for detector in known_detectors(log)}
    if names is None:
        return list(known.values())
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"no detector {name!r} for this log; there are: {', '.join(known)}", path=log.name
            )
    return [known[name] for name in wanted]
