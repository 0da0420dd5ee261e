"""Migration of messages to other versions of their types by rules."""

from __future__ import annotations

from logreel.ops.migrate.migrate import Migrated, MissingRuleError, TypeChange, migrate, write_template

__all__ = ["Migrated", "MissingRuleError", "TypeChange", "migrate", "write_template"]
