"""XML of other people as a tree: bounded, and without a document type, which could name entities and files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from logreel.errors import UnsupportedError

#: Elements of a text, and how deep they are.
ELEMENTS, DEPTH = 50_000, 32


class Element:
    """An element of XML.

    name        without its namespace
    attributes  text by name
    children    its elements, in order
    text        its own characters, for elements whose text was asked for
    """

    __slots__ = ("_parts", "attributes", "children", "name")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name, self.attributes = name, attributes
        self.children: list[Element] = []
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, part: str) -> None:
        """Append characters to the text."""
        self._parts.append(part)

    def each(self, name: str) -> Iterator[Element]:
        """Yield the children of a name."""
        return (child for child in self.children if child.name == name)

    def first(self, *path: str) -> Element | None:
        """Return the first child of a name, its first child of the next name, and so on; None if one is missing."""
        element: Element | None = self
        for name in path:
            element = next(element.each(name), None) if element is not None else None
        return element

    def get(self, name: str, otherwise: str = "") -> str:
        """Return the text of an attribute."""
        return self.attributes.get(name, otherwise)


def xml_tree(data: str | bytes, what: str, texts: Collection[str] = (), depth: int = DEPTH) -> Element:
    """Return an element whose children are the root of an XML text; it keeps the characters of elements named *texts*.

    *what* names the text in errors. Raises UnsupportedError for what is no XML, has a document type, or is too large.
    """
    # Only for logs with a robot.
    from xml.parsers import expat

    top = Element("", {})
    stack, count = [top], 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > ELEMENTS or len(stack) > depth:
            raise UnsupportedError(f"{what} is too large or too deep")
        element = Element(name.rpartition(":")[2], attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def characters(part: str) -> None:
        if stack[-1].name in texts:
            stack[-1].add(part)

    def no_doctype(*about: Any) -> None:
        raise UnsupportedError(f"{what} has a document type, which is not read")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: stack.pop()
    parser.StartDoctypeDeclHandler = no_doctype
    if texts:
        parser.CharacterDataHandler = characters
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UnsupportedError(f"{what} is no XML: {error}") from error
    return top
