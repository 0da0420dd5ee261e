"""Slices of logs over HTTP: ``Service`` implements ``logreel serve``.

``service`` has the table of requests, their handlers and the schemas of their answers; ``queries`` answers questions
about one log or all with JSON data. ``catalogue`` finds the logs, keeps some of them open and what they contain in
memory. Called by the command line and by programs that embed the service; other outputs only use the
catalogue.
"""

from __future__ import annotations

from logreel.outputs.serve.service import Service

__all__ = ["Service"]
