"""Layouts of the messages of a bag: by the connection's definition, else by a given or standard one of its type."""

from __future__ import annotations

from functools import cached_property

from logreel.errors import DefinitionError, Problem, UsageError
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.schemas import ros1msg

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Definitions:
    """Layouts of the connections of one bag; each definition that cannot be used is added to *problems* once.

    Precedence: the bag's own text, definitions that the user gave, standard messages.
    """

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems

    @cached_property
    def _registry(self) -> ros1msg.Registry:
        return ros1msg.Registry.of(self._source.definitions)

    def given(self, topic: str, kind: str, md5: str, text: str) -> tuple[str, str, str]:
        """Return type, checksum and text of channel *topic*: those of the bag, completed by those that the user gave.

        Raises UsageError if the given type is no type name of ROS 1.
        """
        given = self._source.types.get(topic)
        if given is None and not self._source.definitions:
            return kind, md5, text
        if given is not None and given != kind:
            if not ros1msg.is_type(given):
                raise UsageError(f"{given!r:.80} is no type of ROS 1, which look like 'package/Name'")
            kind = given
        found, summed = ros1msg.as_read(kind, text, md5, self._registry)
        # A type that the user gave also decides the checksum.
        return kind, summed if given is not None else md5, found

    def layout(self, topic: str, kind: str, md5: str, text: str) -> Layout:
        """Return the Layout of a channel's messages; RAW if no definition can be used, which is reported."""
        try:
            found = ros1msg.define(kind, text, md5, self._registry)
            layout = ros1msg.layout(found)
        except DefinitionError as error:
            text = f"{topic}: {error.text}; its messages are raw bytes (definitions can be given on opening)"
            self._note("definition", text)
            return RAW
        if not found.matches(md5):
            self._note("md5", f"{topic}: its definition has md5 {found.md5}, the bag states {md5}")
        return layout

    def _note(self, code: str, text: str) -> None:
        problem = Problem(code, 0, 0, False, text)
        if problem not in self._problems:
            self._problems.append(problem)
