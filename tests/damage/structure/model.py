"""Fields and records of a file, and how to change a field."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement of a file: its name (record and field), its place, and how it is written.

    how    ``int`` (little-endian, unsigned), ``varint`` (padded to the same width), ``digits``, ``f64`` or ``raw``
    """

    name: str
    at: int
    width: int
    how: str = "int"

    @property
    def end(self) -> int:
        """Offset of the first byte after the field."""
        return self.at + self.width

    @property
    def greatest(self) -> int:
        """The greatest number that fits."""
        if self.how == "varint":
            return min(1 << 7 * self.width, 1 << 64) - 1
        return 10**self.width - 1 if self.how == "digits" else 256**self.width - 1

    def value(self, data: bytes) -> int:
        """Return the number in the field; of a float its bits."""
        raw = data[self.at : self.end]
        if self.how == "varint":
            return sum((byte & 127) << 7 * i for i, byte in enumerate(raw))
        return int(raw) if self.how == "digits" else int.from_bytes(raw, "little")

    def with_value(self, data: bytes, value: int) -> bytes:
        """Return *data* with another number in the field, which keeps its width."""
        value = max(0, min(value, self.greatest))
        if self.how == "varint":
            last = self.width - 1
            raw = bytes((value >> 7 * i & 127) | (128 if i < last else 0) for i in range(self.width))
        elif self.how == "digits":
            raw = str(value).zfill(self.width).encode()
        else:
            raw = value.to_bytes(self.width, "little")
        return data[: self.at] + raw + data[self.end :]


@dataclass(slots=True)
class Structure:
    """Fields and records of one file.

    size     bytes of the file; a field that ends behind them raises ValueError, so that walkers of damage end
    records  begin, end and kind of each record, in file order
    """

    size: int
    fields: list[Stated] = field(default_factory=list)
    records: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, name: str, at: int, width: int, how: str = "int") -> None:
        """Add a field."""
        if at + width > self.size:
            raise ValueError(f"{name} at {at} is not in the file")
        self.fields.append(Stated(name, at, width, how))

    def inside(self, begin: int, end: int) -> list[Stated]:
        """Return the fields between two places, in file order."""
        return [one for one in self.fields if begin <= one.at and one.end <= end]

    def replaced(self, data: bytes, begin: int, end: int, new: bytes) -> bytes:
        """Return *data* with other bytes from *begin* to *end*; lengths of what contains them are adapted."""
        out = data
        for one in self.fields:
            if one.end <= begin and one.how in ("int", "varint") and one.name.endswith((" length", " size")):
                stated = one.value(data)
                if one.end + stated >= end:
                    out = one.with_value(out, stated + len(new) - (end - begin))
        return out[:begin] + new + out[end:]

    def named(self, name: str) -> list[Stated]:
        """Return the fields of a name, in file order."""
        return [one for one in self.fields if one.name == name]

    @property
    def names(self) -> list[str]:
        """Names of all fields, each once."""
        return list(dict.fromkeys(one.name for one in self.fields))


def u16(data: bytes, at: int) -> int:
    """Return the u16 at an offset."""
    return struct.unpack_from("<H", data, at)[0]


def u32(data: bytes, at: int) -> int:
    """Return the u32 at an offset."""
    return struct.unpack_from("<I", data, at)[0]


def u64(data: bytes, at: int) -> int:
    """Return the u64 at an offset."""
    return struct.unpack_from("<Q", data, at)[0]
