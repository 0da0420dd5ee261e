"""Slices of logs over HTTP: ``Service`` implements ``logreel serve``."""

from __future__ import annotations

from logreel.outputs.serve.server import Service

__all__ = ["Service"]
