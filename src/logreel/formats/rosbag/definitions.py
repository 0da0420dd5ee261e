"""Layouts of the messages of a bag: by the connection's definition, else by a given or standard one of its type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, Problem, UsageError
from logreel.io.source import Source
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.layout.program import compile_layout
from logreel.log.scan import Noted
from logreel.schemas import ros1msg

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Definitions:
    """Layouts of the connections of one bag; each definition that cannot be used is added to *problems* once.

    Precedence: the bag's own text, definitions that the user gave, standard messages.
    """

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._noted = Noted()

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

    def fitting(self, kind: str, payloads: Callable[[], Sequence[NDArray[np.uint8]]]) -> str:
        """Return the text of an earlier version of type *kind* that fits all *payloads*, for bags without checksums.

        Empty if the version that is used otherwise fits, if there is no other version, or if none fits.
        """
        try:
            versions = list(self._registry.versions(kind))
        except DefinitionError:
            return ""
        if len(versions) < 2:
            return ""
        some = payloads()
        for number, found in enumerate(versions):
            if _fits(ros1msg.layout(found), some):
                return found.text if number else ""
        return ""

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
        self._noted.add(self._problems, problem)


def _fits(layout: Layout, payloads: Sequence[NDArray[np.uint8]]) -> bool:
    """Return whether each payload ends where its content does."""
    if any(len(payload) < layout.measure.least for payload in payloads):
        return False
    program = compile_layout(layout)
    stop = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
    start = stop - np.array([len(payload) for payload in payloads], np.int64)
    status = np.zeros(len(payloads), np.uint8)
    data = np.concatenate([np.zeros(0, np.uint8), *payloads])
    kernel.count(data, start, stop, program.ops, np.zeros(len(program.columns), np.int64), status)
    return bool((status == kernel.OK).all())
