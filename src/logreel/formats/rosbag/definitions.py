"""Which Layout the messages of a connection have: by its own definition, else by what is known of its type."""

from __future__ import annotations

from functools import cached_property

from logreel.errors import DefinitionError, Problem, UsageError
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
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
        return ros1msg.Registry.of(self._source.definitions)

    def given(self, topic: str, kind: str, md5: str, text: str) -> tuple[str, str, str]:
        """Type, checksum and text of channel *topic* as the log has them, or as the user gave what it lacks."""
        given = self._source.types.get(topic)
        if given is None and not self._source.definitions:
            return kind, md5, text
        if given is not None and given != kind:
            if not ros1msg.is_type(given):
                raise UsageError(f"{given!r:.80} is no type of ROS 1, which look like 'package/Name'")
            kind = given
        found, summed = ros1msg.as_read(kind, text, md5, self._registry)
        # Who says the type of messages of unknown checksum says its checksum, too.
        return kind, summed if given is not None else md5, found

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
