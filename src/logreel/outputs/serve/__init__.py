"""Slices of logs over HTTP: ``Service`` is what ``logreel serve`` runs."""

from __future__ import annotations

from logreel.outputs.serve.server import Service

__all__ = ["Service"]
