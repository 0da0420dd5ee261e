"""The part of YAML that recorders write ``metadata.yaml`` in: blocks of mappings and lists, and scalars on lines.

Anchors, aliases, tags and several documents are refused: no recorder writes them, and they let a few bytes stand for
any number of values.
"""

from __future__ import annotations

import re
from typing import Any

from logreel.errors import LogError

#: Most characters of a text, and depth of its values. Real files have some kilobytes, and six levels.
MAX_TEXT, MAX_DEPTH = 16 << 20, 32
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER, _FLOAT = re.compile(r"[-+]?\d{1,40}"), re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?")
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'\[\]{},#&*!|>%@`-][^#]*?|-[^\s#][^#]*?)\s*:(?:\s+|$)"""
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN = dict(zip('0abt\tnvfre "/\\N_', '\0\a\b\t\t\n\v\f\r\x1b "/\\\x85\xa0', strict=True))
_REFUSED = "&*!%@`"


def parse(text: str) -> Any:
    """Return the value of a text: dict, list, str, int, float, bool or None.

    Raises LogError with the number of the line for what is not read.
    """
    if len(text) > MAX_TEXT:
        raise LogError(f"a YAML text of {len(text)} characters; at most {MAX_TEXT} are read")
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._at = 0

    def document(self) -> Any:
        if self._next() is not None and self._lines[self._at].rstrip() == "---":
            self._at += 1
        value = self._block(-1, 0)
        if self._next() is not None and self._lines[self._at].rstrip() != "...":
            raise self._error("expected the end of the text")
        return value

    def _error(self, text: str) -> LogError:
        shown = self._lines[self._at].strip() if self._at < len(self._lines) else ""
        return LogError(f"YAML line {self._at + 1}: {text}, found {shown[:60]!r}")

    def _next(self) -> int | None:
        """Return the indentation of the next line with content, and move there; None at the end."""
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            content = line.lstrip(" ")
            if content and content[0] != "#":
                if content[0] == "\t":
                    raise self._error("tabs do not indent")
                return len(line) - len(content)
            self._at += 1
        return None

    def _block(self, parent: int, depth: int) -> Any:
        """Return the value of the lines that are indented more than *parent*; None if there are none."""
        if depth > MAX_DEPTH:
            raise self._error(f"values are nested more than {MAX_DEPTH} deep")
        indent = self._next()
        if indent is None or indent <= parent:
            return None
        content = self._content(indent)
        if content == "-" or content.startswith("- "):
            return self._list(indent, depth)
        if _KEY.match(content):
            return self._mapping(indent, depth)
        return self._inline(content, parent, depth)

    def _content(self, indent: int) -> str:
        return self._lines[self._at][indent:].rstrip()

    def _list(self, indent: int, depth: int) -> list[Any]:
        items = list[Any]()
        while self._next() == indent and ((content := self._content(indent)) == "-" or content[:2] == "- "):
            # The value of the item is a block of its own, which begins behind the mark.
            self._lines[self._at] = " " * (indent + 1) + content[1:]
            items.append(self._block(indent, depth + 1))
        return items

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        values = dict[str, Any]()
        while self._next() == indent:
            content = self._content(indent)
            match = _KEY.match(content)
            if match is None:
                if content == "-" or content.startswith(("- ", "...", "---")):
                    break
                raise self._error("expected a key and a colon")
            key = str(self._key(match[1]))
            rest = content[match.end() :].lstrip()
            if key in values:
                raise self._error(f"the key {key[:40]!r} is there twice")
            if rest and rest[0] != "#":
                values[key] = self._inline(rest, indent, depth)
                continue
            self._at += 1
            below = self._next()
            # A list may be indented as the key that it belongs to.
            is_list = below == indent and self._content(indent)[:2] in ("- ", "-")
            values[key] = self._block(indent - is_list, depth + 1)
        return values

    def _key(self, text: str) -> str:
        return self._quoted(text)[0] if text[0] in "\"'" else text

    def _inline(self, text: str, indent: int, depth: int) -> Any:
        """Return a value that begins on the line with *text*, and move behind it."""
        if text[0] in _REFUSED:
            raise self._error("anchors, aliases and tags are not read")
        if text[0] in "|>":
            return self._literal(text, indent)
        if text[0] in "\"'":
            return self._quoted_lines(text)
        if text[0] in "[{":
            value, rest = self._flow(text, depth + 1)
            self._expect_end(rest)
            return value
        self._at += 1
        words = [_without_comment(text)]
        while (more := self._next()) is not None and more > indent:
            if _KEY.match(self._content(more)):
                raise self._error("a key is not expected")
            words.append(_without_comment(self._content(more)))
            self._at += 1
        return _scalar(" ".join(words))

    def _expect_end(self, rest: str) -> None:
        if rest.strip() and not rest.lstrip().startswith("#"):
            raise self._error("expected the end of the line")
        self._at += 1

    def _literal(self, text: str, indent: int) -> str:
        """Return a block scalar: lines as they are (``|``), or folded (``>``)."""
        self._at += 1
        lines, inner = list[str](), -1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            content = line.strip()
            at = len(line) - len(line.lstrip(" "))
            if content and at <= indent:
                break
            inner = at if content and inner < 0 else inner
            lines.append(line[inner:] if content else "")
            self._at += 1
        body = "\n".join(lines).rstrip("\n")
        if text[0] == ">":
            body = _folded(body.split("\n"))
        return body if "-" in text else body + "\n" * bool(body)

    def _quoted_lines(self, text: str) -> str:
        """Return a quoted scalar, which may go on over further lines."""
        mark, lines, first = text[0], list[str](), self._at
        line = text[1:]
        while (end := _end_of(line, mark)) == len(line):
            lines.append(line)
            self._at += 1
            if self._at >= len(self._lines):
                self._at = first
                raise self._error("a quotation mark is missing")
            line = self._lines[self._at].strip(" \r")
        lines.append(line[:end])
        self._expect_end(line[end + 1 :])
        return self._unquoted(lines, mark)

    def _quoted(self, text: str) -> tuple[str, str]:
        """Return a quoted scalar on one line, and what follows it."""
        end = _end_of(text[1:], text[0]) + 1
        if end == len(text):
            raise self._error("a quotation mark is missing")
        return self._unquoted([text[1:end]], text[0]), text[end + 1 :]

    def _unquoted(self, lines: list[str], mark: str) -> str:
        if mark == "'":
            return _folded(lines).replace("''", "'")
        joined = [lines[0]]
        for line in lines[1:]:
            # An escaped end of line joins lines without a space.
            if _ESCAPED_END.search(joined[-1]):
                joined[-1] = joined[-1][:-1] + line
            else:
                joined.append(line)
        return _ESCAPE.sub(self._unescaped, _folded(joined))

    def _unescaped(self, match: re.Match[str]) -> str:
        code = match[1]
        if len(code) > 1:
            number = int(code[1:], 16)
            if number > 0x10FFFF:
                raise self._error("no such character")
            return chr(number)
        if code not in _PLAIN:
            raise self._error("an unknown escape")
        return _PLAIN[code]

    def _flow(self, text: str, depth: int) -> tuple[Any, str]:
        """Return a list or mapping in brackets, on one line, and what follows it."""
        if depth > MAX_DEPTH:
            raise self._error(f"values are nested more than {MAX_DEPTH} deep")
        is_list, close = text[0] == "[", "]" if text[0] == "[" else "}"
        items, values, rest = list[Any](), dict[str, Any](), text[1:].lstrip()
        while not rest.startswith(close):
            if not is_list:
                match = _KEY.match(rest)
                if match is None:
                    raise self._error("expected a key and a colon")
                key, rest = self._key(match[1]), rest[match.end() :].lstrip()
            value, rest = self._flow_value(rest, depth)
            if is_list:
                items.append(value)
            else:
                values[key] = value
            rest = rest.lstrip()
            if rest.startswith(","):
                rest = rest[1:].lstrip()
            elif not rest.startswith(close):
                raise self._error(f"expected a comma or {close!r}")
        return items if is_list else values, rest[1:]

    def _flow_value(self, rest: str, depth: int) -> tuple[Any, str]:
        if rest[:1] in ("[", "{"):
            return self._flow(rest, depth + 1)
        if rest[:1] in ('"', "'"):
            return self._quoted(rest)
        match = re.match(r"[^,\[\]{}]*", rest)
        word = match[0] if match else ""
        if word[:1] and word[0] in _REFUSED:
            raise self._error("anchors, aliases and tags are not read")
        return _scalar(word.strip()), rest[len(word) :]


_BODY = {'"': re.compile(r'(?:[^"\\]|\\.|\\$)*'), "'": re.compile(r"(?:[^']|'')*")}
_ESCAPED_END = re.compile(r"(?<!\\)(?:\\\\)*\\$")


def _end_of(line: str, mark: str) -> int:
    """Return where the quotation mark that ends a scalar is; the length of the line if it is not on it."""
    match = _BODY[mark].match(line)
    return match.end() if match else 0


def _without_comment(text: str) -> str:
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


def _folded(lines: list[str]) -> str:
    """Return lines as one text: a line break is a space, and an empty line a line break."""
    if len(lines) == 1:
        return lines[0]
    out, breaks = lines[0].rstrip(" "), 0
    for n, line in enumerate(lines[1:], 2):
        content = line if n == len(lines) else line.rstrip(" ")
        if not content and n < len(lines):
            breaks += 1
            continue
        out += "\n" * breaks if breaks else " "
        out += content
        breaks = 0
    return out


def _scalar(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def quoted(text: str) -> str:
    """Return *text* as a scalar in double quotes."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    body = "".join(
        escapes.get(c)
        or (c if c.isprintable() else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\U{ord(c):08x}")
        for c in text
    )
    return f'"{body}"'
