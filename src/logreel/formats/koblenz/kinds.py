"""Kinds of messages in a Koblenz log: a type in one version, and the Layout of its payloads."""

from __future__ import annotations

from dataclasses import dataclass

from logreel.formats.koblenz.definitions import RAW, UNCOMPRESSED, USUAL_VERSION, MessageType
from logreel.io.source import Source
from logreel.layout.layout import Layout


@dataclass(slots=True)
class Kind:
    """Messages of one type and version.

    known   the type, or None
    longer  some of its messages may be longer than their Layout
    raw     messages of a version that nothing describes do not begin with the fields that are known
    """

    type: int
    version: int
    known: MessageType | None
    longer: bool = False
    raw: bool = False

    @property
    def layout(self) -> Layout:
        """The Layout of its messages."""
        if self.known is None or self.raw or self.version < self.known.version:
            return RAW
        return self.known.layout if self.is_described else self.known.newer

    @property
    def is_described(self) -> bool:
        """True if the description is of this very version."""
        return self.known is not None and self.version == self.known.version

    @property
    def name(self) -> str:
        """The name of the type, or its number; versions that are not described are marked by ``@``."""
        name = self.known.name if self.known else f"0x{self.type:08X}"
        usual = self.known.version if self.known else USUAL_VERSION
        return name if self.version == usual else f"{name}@{self.version}"

    def layout_at(self, source: Source, payload: int, stop: int) -> Layout:
        """The Layout of one message."""
        # A picture says of itself, in its second number, whether it is of the described kind.
        if self.is_described and self.known and "compressed" in self.known.instance:
            return self.layout if any(source.read(payload + 4, min(4, stop - payload))) else UNCOMPRESSED
        return self.layout
