"""Migration of messages to other versions of their types by rules.

``plan`` reads rules and finds the way between two versions of a type (``types``, ``paths``); a step is a function from
values to values (``bmr`` with an ``interpreter`` for rules of ROS, ``field_changes`` for TOML), or from columns to
columns where that is possible. ``migrate`` is the transform and the function behind the verb.
"""

from __future__ import annotations

from logreel.ops.migrate.migrate import Migrated, MissingRuleError, TypeChange, migrate, write_template

__all__ = ["Migrated", "MissingRuleError", "TypeChange", "migrate", "write_template"]
