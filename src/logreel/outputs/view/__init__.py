"""The viewer in the browser: ``Viewer`` implements ``logreel view``.

``app`` is the table of requests, ``session`` the open logs and ``view_log`` one of them; ``channels``, ``overview``,
``series`` and ``spatial`` answer with data, whose limits are in ``limits``. What things mean is worked out
in ``logreel.meaning``; the page itself is in ``static``. Only ``cli`` and ``logreel/__init__`` call it.
"""

from __future__ import annotations

from logreel.outputs.view.viewer import Viewer, view

__all__ = ["Viewer", "view"]
