"""ROS 2 message definitions (``.msg``), and Layouts of their CDR messages."""

from __future__ import annotations

from logreel.schemas.ros2msg.cdr import Ros2Definition, Ros2Field, layout, parse

__all__ = ["Ros2Definition", "Ros2Field", "layout", "parse"]
