"""Requests of the viewer: name, parameters and function of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True)
class ViewRoute:
    """One request: ``/api/PATH``, or ``/api/logs/ID/PATH`` if it is about a log.

    path     may contain parts in braces, which become parameters: ``tiles/{z}/{x}/{y}``
    handler  answers it in a thread, from the Session, the ViewLog if it is about a log, and the Parameters; may raise
             LogError and Cancelled
    known    names of its parameters; those that may be repeated end with ``…``
    of_log   whether it is about a log
    """

    path: str
    handler: Callable[..., ASGIApp]
    known: tuple[str, ...] = ()
    of_log: bool = True

    @property
    def address(self) -> str:
        """Path of the address, as Starlette writes it."""
        return f"/api/logs/{{log}}/{self.path}" if self.of_log else f"/api/{self.path}"
