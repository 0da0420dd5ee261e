"""The viewer in the browser: ``Viewer`` implements ``logreel view``."""

from __future__ import annotations

from logreel.outputs.view.viewer import Viewer, view

__all__ = ["Viewer", "view"]
