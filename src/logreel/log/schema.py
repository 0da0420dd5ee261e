"""The definition of the messages of a channel, as the log contains it."""

from __future__ import annotations

from dataclasses import dataclass

from logreel.log.brief import Brief


@dataclass(frozen=True, slots=True, repr=False)
class Schema(Brief):
    """A message type, as the log defines it.

    name      name of the type, such as ``vehicle_attitude`` or ``sensor_msgs/Imu``
    encoding  definition language, such as ``ulog``, ``ros1msg``
    text      the definition verbatim; empty if the log contains none
    data      a binary definition, such as compiled descriptors; else empty
    """

    name: str
    encoding: str
    text: str = ""
    data: bytes = b""

    @classmethod
    def of(cls, name: str, encoding: str, raw: bytes) -> Schema:
        """Return the Schema with the definition *raw*: text if it is UTF-8, else data."""
        try:
            return cls(name, encoding, raw.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(name, encoding, "", raw)

    @property
    def raw(self) -> bytes:
        """The definition as bytes."""
        return self.data or self.text.encode("utf-8", "surrogateescape")
