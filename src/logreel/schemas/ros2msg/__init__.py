"""ROS 2 message definitions (``.msg``), and Layouts of their CDR messages."""

from __future__ import annotations

from logreel.schemas.ros2msg.cdr import layout
from logreel.schemas.ros2msg.grammar import FieldLine, Message, parse

__all__ = ["FieldLine", "Message", "layout", "parse"]
