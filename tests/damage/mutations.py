"""Mutations of files; the package contains them, for the formats of plug-ins."""

from __future__ import annotations

from logreel.testing.mutations import KINDS, mutate

__all__ = ["KINDS", "mutate"]
