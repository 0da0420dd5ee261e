"""Write messages.txt from MAVLink's public definitions: ``make_messages.py minimal.xml common.xml > messages.txt``.

A line for each message: id, name, then ``name:type``, ``name:type[n]`` or ``name:type:unit`` for each field
in the order of its definition; fields after ``|`` are extensions, which version 1 does not have.
"""

from __future__ import annotations

import sys
from xml.etree import ElementTree


def line(message: ElementTree.Element) -> str:
    """Return the line of one message."""
    parts = [message.attrib["id"], message.attrib["name"]]
    for child in message:
        if child.tag == "extensions":
            parts.append("|")
        elif child.tag == "field":
            kind = child.attrib["type"].replace("_mavlink_version", "")
            unit = child.attrib.get("units", "").replace(" ", "")
            parts.append(":".join(filter(None, (child.attrib["name"], kind, unit))))
    return " ".join(parts)


def main(paths: list[str]) -> None:
    """Print the lines of all messages, by id; a later file with the same id does not count."""
    lines: dict[int, str] = {}
    for path in paths:
        for message in ElementTree.parse(path).getroot().iter("message"):
            lines.setdefault(int(message.attrib["id"]), line(message))
    sys.stdout.write("\n".join(lines[number] for number in sorted(lines)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
