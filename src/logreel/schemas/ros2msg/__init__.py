"""ROS 2 message definitions (``.msg``), and how their messages lie in CDR."""

from __future__ import annotations

from logreel.schemas.ros2msg.cdr import layout
from logreel.schemas.ros2msg.grammar import FieldLine, Message, parse

__all__ = ["FieldLine", "Message", "layout", "parse"]
