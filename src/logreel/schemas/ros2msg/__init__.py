"""ROS 2 message definitions (``.msg``), and Layouts of their CDR messages."""

from __future__ import annotations

from logreel.schemas.ros2msg.cdr import FieldLine, Message, layout, parse

__all__ = ["FieldLine", "Message", "layout", "parse"]
