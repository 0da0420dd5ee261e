"""Scans a growing file: by the Growing of its format, which reads only new bytes, or else from its start."""

from __future__ import annotations

from dataclasses import replace

from logreel.errors import LogError
from logreel.io.source import Source
from logreel.log.growing import Growing
from logreel.log.scan import Scan
from logreel.registry.format import Format
from logreel.registry.registry import find_format


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
