"""Lines of the keys of a TOML file, for error messages."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

_HEADER = re.compile(r"\s*\[")
#: A key in front of an equals sign, with quotes or without.
KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")


def line_of(text: str, keys: Sequence[str]) -> int:
    """Return the number of the line on which the key or table at the path *keys* begins, else that of its table.

    Items of arrays of tables are not told apart: the first one counts. 1 if nothing of the path is found.
    """
    table: tuple[str, ...] = ()
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if _HEADER.match(line):
            table = path = path_of(line)
        elif match := KEY.match(line):
            path = (*table, *path_of(f"{match[1]}=0"))
        else:
            continue
        common = 0
        while common < min(len(path), len(keys)) and path[common] == keys[common]:
            common += 1
        if common > depth:
            best, depth = number, common
    return best


def path_of(line: str) -> tuple[str, ...]:
    """Return the path of keys of a header or of a key; () if it is none."""
    try:
        value: Any = tomllib.loads(line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    path: list[str] = []
    while isinstance(value, dict | list) and value:
        if isinstance(value, list):
            value = value[0]
            continue
        key, value = next(iter(value.items()))
        path.append(key)
    return tuple(path)


def key_text(name: str) -> str:
    """Return a key as TOML, in quotes where it needs them."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return json.dumps(name.encode("utf-8", "replace").decode(), ensure_ascii=False).replace("\x7f", "\\u007f")
