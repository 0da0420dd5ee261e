"""Kinds of messages in a Koblenz log: a type in one version, and the Layout of its payloads."""

from __future__ import annotations

from dataclasses import dataclass

from logreel.formats.koblenz.definitions import RAW, UNCOMPRESSED, USUAL_VERSION, MessageType
from logreel.io.source import Source
from logreel.layout.layout import Layout


@dataclass(slots=True)
class Kind:
    """A message type in one version.

    known   the type, or None
    longer  whether some messages are longer than their Layout
    raw     whether messages of an undescribed version do not begin with the known fields
    """

    type: int
    version: int
    known: MessageType | None
    longer: bool = False
    raw: bool = False

    def __post_init__(self) -> None:
        if self.known is not None:
            self.known = self.known.at(self.version)

    @property
    def layout(self) -> Layout:
        """The Layout of the payloads."""
        if self.known is None or self.raw or self.version < self.known.version:
            return RAW
        return self.known.layout if self.is_described else self.known.newer

    @property
    def is_described(self) -> bool:
        """Whether this version is described."""
        return self.known is not None and self.version == self.known.version

    @property
    def name(self) -> str:
        """Name of the type, or its id in hex; followed by ``@`` and the version unless that is the usual one."""
        name = self.known.name if self.known else f"0x{self.type:08X}"
        usual = self.known.usual_version if self.known else USUAL_VERSION
        return name if self.version == usual else f"{name}@{self.version}"

    def layout_at(self, source: Source, payload: int, stop: int) -> Layout:
        """Return the Layout of the payload from *payload* to *stop*."""
        # Only pictures whose second number is not 0 (compressed) are described.
        if self.is_described and self.known and "compressed" in self.known.instance:
            return self.layout if any(source.read(payload + 4, min(4, stop - payload))) else UNCOMPRESSED
        return self.layout
