"""Structure of ROS bags of all versions."""

from __future__ import annotations

from damage.structure.model import Structure, u32

_NUMBERS = {
    b"index_pos",
    b"conn_count",
    b"chunk_count",
    b"conn",
    b"size",
    b"ver",
    b"count",
    b"chunk_pos",
    b"sec",
    b"nsec",
}
_OPS = {
    1: "definition",
    2: "message",
    3: "file header",
    4: "index",
    5: "chunk",
    6: "chunk info",
    7: "connection",
}
_TIMES = {b"time", b"start_time", b"end_time"}
_TEXTS = {b"md5", b"md5sum", b"type", b"topic", b"message_definition", b"def", b"compression"}


def rosbag(data: bytes) -> Structure:
    """Return the structure of a sound bag."""
    line = data[: data.find(b"\n")]
    out = Structure(len(data))
    if line.startswith(b"#ROSLOG V1.0") or line == b"##MULTILOG##":
        _version_1_0(data, out)
    elif line.endswith(b"V1.1"):
        at = len(line) + 1
        while at < len(data):
            begin = at
            for name in ("topic", "md5", "type"):
                end = data.index(b"\n", at)
                out.add(f"message {name}", at, end - at, "raw")
                at = end + 1
            at = _tail(data, at, out)
            out.records.append((begin, at, "message"))
    elif not line.startswith(b"#"):
        at = 0
        for name in ("topic", "line 2", "line 3"):
            end = data.index(b"\n", at)
            out.add(f"header {name}", at, end - at, "raw")
            at = end + 1
        while at < len(data):
            begin, at = at, _tail(data, at, out)
            out.records.append((begin, at, "message"))
    else:
        walk_records(data, len(line) + 1, len(data), out, "")
    return out


def _tail(data: bytes, at: int, out: Structure) -> int:
    for i, name in enumerate(("sec", "nsec", "length")):
        out.add(f"message {name}", at + 4 * i, 4)
    return at + 12 + u32(data, at + 8)


def _version_1_0(data: bytes, out: Structure) -> None:
    at = data.index(b"\n") + 1
    end = data.index(b"\n", at)
    out.add("header quantity", at, end - at, "digits")
    known, at = set[bytes](), end + 1
    while at < len(data):
        begin, end = at, data.index(b"\n", at)
        topic, at = data[at:end], end + 1
        if topic in known:
            at = _tail(data, at, out)
            out.records.append((begin, at, "message"))
        else:
            known.add(topic)
            at = data.index(b"\n", data.index(b"\n", at) + 1) + 1
            out.records.append((begin, at, "topic"))


def walk_records(data: bytes, at: int, stop: int, out: Structure, where: str) -> None:
    """Add the records in an interval of a bag since version 1.2, or of a chunk; *where*: prefix of their kinds."""
    while at < stop:
        begin = at
        size = u32(data, at)
        head, pos = at + 4, at + 4
        places: dict[bytes, tuple[int, int]] = {}
        widths = []
        while pos < head + size:
            n = u32(data, pos)
            name = data[pos + 4 : pos + 4 + n].partition(b"=")[0]
            places[name] = pos + 5 + len(name), n - 1 - len(name)
            widths.append((name, pos))
            pos += 4 + n
        kind = where + _OPS.get(data[places[b"op"][0]], "unknown")
        out.add(f"{kind} header length", at, 4)
        for field, length_at in widths:
            out.add(f"{kind} {field.decode()} length", length_at, 4)
        for name, (place, width) in places.items():
            if name in _TIMES:
                out.add(f"{kind} {name.decode()}", place, 4)
            elif name in _NUMBERS or name == b"op":
                out.add(f"{kind} {name.decode()}", place, width)
            elif name in _TEXTS and width:
                out.add(f"{kind} {name.decode()}", place, width, "raw")
        body = head + size + 4
        stored = u32(data, body - 4)
        out.add(f"{kind} data length", body - 4, 4)
        at = body + stored
        _content(data, kind, places, body, at, out)
        out.records.append((begin, at, kind))


def _content(
    data: bytes, kind: str, places: dict[bytes, tuple[int, int]], body: int, end: int, out: Structure
) -> None:
    if kind == "chunk" and data[slice(*_span(places, b"compression"))] == b"none":
        walk_records(data, body, end, out, "inner ")
    elif kind == "index":
        names = ("sec", "nsec", "pos") if b"topic" in places else ("sec", "nsec", "offset")
        widths = (4, 4, 8 if b"topic" in places else 4)
        while body < end:
            for name, width in zip(names, widths, strict=True):
                out.add(f"index entry {name}", body, width)
                body += width
    elif kind == "chunk info":
        while body < end:
            out.add("chunk info entry conn", body, 4)
            out.add("chunk info entry count", body + 4, 4)
            body += 8
    elif kind == "connection":
        while body < end:
            n = u32(data, body)
            field = data[body + 4 : body + 4 + n].partition(b"=")[0]
            if field in _TEXTS:
                out.add(f"connection {field.decode()} length", body, 4)
                out.add(f"connection {field.decode()}", body + 5 + len(field), n - 1 - len(field), "raw")
            body += 4 + n


def _span(places: dict[bytes, tuple[int, int]], name: bytes) -> tuple[int, int]:
    at, width = places[name]
    return at, at + width
