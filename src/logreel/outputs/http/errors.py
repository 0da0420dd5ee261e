"""Answers to requests that failed: a status and one sentence, the same for all services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from logreel.errors import LogError, NotFoundError, UsageError
from logreel.outputs.http.answer import Tell


class ErrorAnswers:
    """Exception handlers of one service.

    tell      called with a sentence about an error of the service itself
    nothing   sentence for an address that does not exist
    broken    sentence for an error of the service itself
    statuses  status of further LogErrors, by class
    """

    def __init__(
        self, tell: Tell, nothing: str, broken: str, statuses: Mapping[type[LogError], int] | None = None
    ) -> None:
        self._tell, self._nothing, self._broken = tell, nothing, broken
        self._statuses = dict(statuses or {})

    @property
    def handlers(self) -> Any:
        """Handlers by class, as Starlette takes them."""
        return dict.fromkeys((LogError, OSError, HTTPException, Exception), self._failed)

    async def _failed(self, request: Request, error: Exception) -> Response:
        headers = None
        match error:
            case HTTPException():
                status, headers = error.status_code, error.headers
                text = self._nothing if status == 404 else error.detail
            case UsageError():
                status, text = 400, error.text
            case NotFoundError() | FileNotFoundError():
                status, text = 404, getattr(error, "text", "the file is gone")
            case LogError():
                known = (code for kind, code in self._statuses.items() if isinstance(error, kind))
                status, text = next(known, 422), error.text
            case _:
                status, text = 500, self._broken
                self._tell(f"{request.url.path}: {error!r}")
        return JSONResponse({"error": text}, status, headers)
