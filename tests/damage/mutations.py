"""The ways in which files get damaged; they are part of the package, for formats of others."""

from __future__ import annotations

from logreel.testing.mutations import KINDS, mutate

__all__ = ["KINDS", "mutate"]
