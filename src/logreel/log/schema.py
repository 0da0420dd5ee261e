"""What a channel's messages are: the definition as the log carries it."""

from __future__ import annotations

from dataclasses import dataclass

from logreel.log.brief import Brief


@dataclass(frozen=True, slots=True, repr=False)
class Schema(Brief):
    """A message type as the log defines it.

    name      the type's name, e.g. ``vehicle_attitude`` or ``sensor_msgs/Imu``
    encoding  the definition language, e.g. ``ulog``, ``ros1msg``
    text      the definition verbatim, or empty where the log carries none
    data      the definition where it is no text, such as compiled descriptors; else empty
    """

    name: str
    encoding: str
    text: str = ""
    data: bytes = b""

    @classmethod
    def of(cls, name: str, encoding: str, raw: bytes) -> Schema:
        """The schema whose definition are these bytes."""
        try:
            return cls(name, encoding, raw.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(name, encoding, "", raw)

    @property
    def raw(self) -> bytes:
        """The definition as bytes."""
        return self.data or self.text.encode("utf-8", "surrogateescape")
