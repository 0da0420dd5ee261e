"""Values of a log as plain JSON data, without losing any of them."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import UsageError
from logreel.log.log import Log
from logreel.registry.open import check_types, open_log, open_one_of_several
from logreel.registry.registry import formats

if TYPE_CHECKING:
    from logreel.io.source import Definitions, Readable


def plain(value: Any) -> Any:
    """*value* as JSON can hold it: bytes as base64, NaN and infinities as strings, integers unchanged."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _unfinite(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case np.generic() | np.ndarray():
            return plain(value.tolist())
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case _:
            return str(value)


def _unfinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def all_opened(
    several: Iterable[Readable | Log],
    stack: ExitStack,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
) -> list[Log]:
    """Each as an open Log, opened side by side; *stack* closes what was opened here.

    definitions, ros_axes, segment  as for ``logreel.open``, of those that are opened here; the topic of a type that is
                                    given has to be in one of them
    """
    open_one = partial(open_one_of_several, definitions=definitions, ros_axes=ros_axes, segment=segment)
    several = list(several)
    if definitions and all(isinstance(what, Log) for what in several):
        raise UsageError("the logs are open already: give their definitions to logreel.open")
    # Plug-ins are loaded once, not by each thread.
    formats()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        coming = [what if isinstance(what, Log) else pool.submit(open_one, what) for what in several]
    logs = []
    for one in coming:
        if isinstance(one, Log):
            logs.append(one)
        elif one.exception() is None:
            logs.append(stack.enter_context(one.result()))
    for one in coming:
        if isinstance(one, Future):
            one.result()
    check_types(logs)
    return logs


@contextmanager
def opened(what: Readable | Log, definitions: Definitions = ()) -> Iterator[Log]:
    """*what* as an open Log, closed at the end if it was opened here, with *definitions* as for ``logreel.open``."""
    if isinstance(what, Log):
        if definitions:
            raise UsageError("the log is open already: give its definitions to logreel.open", path=what.name)
        yield what
    else:
        with open_log(what, definitions=definitions) as log:
            yield log
