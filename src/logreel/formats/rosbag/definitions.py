"""Which Layout the messages of a connection have."""

from __future__ import annotations

from logreel.errors import DefinitionError
from logreel.model.layout import Layout


def resolve(kind: str, md5: str, definition: str) -> Layout:
    raise DefinitionError("not yet")
