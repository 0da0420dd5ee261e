"""Structure of ULog files."""

from __future__ import annotations

from damage.structure.model import Structure, u16


def ulog(data: bytes) -> Structure:
    """Return the structure of a sound log."""
    out = Structure(len(data))
    out.add("header version", 7, 1)
    out.add("header time", 8, 8)
    at = 16
    while at < len(data):
        size, kind, body = u16(data, at), chr(data[at + 2]), at + 3
        out.add(f"{kind} size", at, 2)
        out.add(f"{kind} type", at + 2, 1)
        if kind == "B":
            out.add("B compatible flags", body, 1)
            out.add("B incompatible flags", body + 8, 1)
            for i in range(3):
                out.add(f"B appended offset {i}", body + 16 + 8 * i, 8)
        elif kind in "IMPQ":
            key = body + (kind in "MQ")
            if kind in "MQ":
                out.add("M continued" if kind == "M" else "Q bits", body, 1)
            out.add(f"{kind} key length", key, 1)
            out.add(f"{kind} key", key + 1, data[key], "raw")
        elif kind == "F":
            out.add("F text", body, size, "raw")
        elif kind == "A":
            out.add("A multi id", body, 1)
            out.add("A msg id", body + 1, 2)
            out.add("A name", body + 3, size - 3, "raw")
        elif kind == "R":
            out.add("R msg id", body, 2)
        elif kind == "D":
            out.add("D msg id", body, 2)
            out.add("D time", body + 2, 8)
        elif kind in "LC":
            out.add(f"{kind} level", body, 1)
            out.add(f"{kind} time", body + (1 if kind == "L" else 3), 8)
        elif kind == "O":
            out.add("O duration", body, 2)
        elif kind == "S":
            out.add("S magic", body, 8)
        at = body + size
        out.records.append((body - 3, at, kind))
    return out
