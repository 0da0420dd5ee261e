"""Which Layout the messages of a connection have: by its own definition, else by what is known of its type."""

from __future__ import annotations

from functools import cached_property

from logreel.errors import DefinitionError, Problem
from logreel.model.layout import Field, Layout, Rest, Struct
from logreel.model.source import Source
from logreel.schemas import ros1msg

#: What messages without a usable definition have.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Definitions:
    """Layouts of the connections of one bag; what cannot be used is recorded as a Problem, once.

    Definitions that the user gave come before the standard messages; the bag's own text comes before both.
    """

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems

    @cached_property
    def _registry(self) -> ros1msg.Registry:
        if not self._source.definitions:
            return ros1msg.standard()
        registry = ros1msg.Registry()
        for path in self._source.definitions:
            # A calibration is of a sensor, not of a message.
            if path.suffix.lower() != ".xml":
                registry.add_path(path)
        return registry

    def layout(self, topic: str, kind: str, md5: str, text: str) -> Layout:
        """The Layout of a channel's messages; RAW where there is no definition that can be used."""
        try:
            found = ros1msg.define(kind, text, md5, self._registry)
            layout = ros1msg.layout(found)
        except DefinitionError as error:
            said = f"{topic}: {error.text}; its messages are raw bytes (definitions can be given on opening)"
            self._note("definition", said)
            return RAW
        if not found.matches(md5):
            self._note("md5", f"{topic}: its definition has md5 {found.md5}, the bag states {md5}")
        return layout

    def _note(self, code: str, text: str) -> None:
        problem = Problem(code, 0, 0, False, text)
        if problem not in self._problems:
            self._problems.append(problem)
