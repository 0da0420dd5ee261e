"""Logs as arguments of functions: open Logs, or anything that ``logreel.open`` takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from logreel.errors import CHANGED, UsageError
from logreel.log.log import Log
from logreel.registry.log_files import several_logs
from logreel.registry.open import check_types, open_log, open_one_of_several

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


def open_many(
    several: Iterable[Openable | Log],
    stack: ExitStack,
    definitions: Definitions = (),
    ros_axes: bool = False,
    segment: int | None = None,
    decrypt: bool = False,
    *,
    parts: bool = False,
    anyway: bool = False,
) -> list[Log]:
    """Return each log as an open Log; open those that are not open yet in parallel, and close them with *stack*.

    Each file of a list, a folder or a pattern is a log of its own.

    definitions, ros_axes, segment, decrypt  as for ``logreel.open``, for the logs opened here; each topic that
                 *definitions* gives a type for has to be in one of the logs
    parts        True: each item is one log, and a list the parts of one recording; with *anyway* as for
                 ``logreel.open``
    """
    open_one = partial(
        open_one_of_several,
        definitions=definitions,
        ros_axes=ros_axes,
        segment=segment,
        decrypt=decrypt,
        anyway=anyway,
    )
    several = list(several) if parts else [log for one in several for log in several_logs(one)]
    if definitions and all(isinstance(what, Log) for what in several):
        raise UsageError("the logs are open already: give their definitions to logreel.open")
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


def read_itself(log: Log, also_remote: bool = True) -> Log:
    """Return *log* as the file itself says, where an index cache was read instead of it; else *log*.

    also_remote  False: a remote log of which only the summary was read is left as it is

    For functions that judge a log, or write its messages to another: an index cache may be older than damage of the
    log, or forged. Damage that the index did not know is added to the problems of *log*, too.
    """
    sources = [part.source for part in log.parts]
    if not any(source.is_restored and (also_remote or not source.in_ranges) for source in sources):
        return log
    options = {name: value for name, value in log.options.items() if name != "guard"}
    one_or_all = sources[0] if log.parts[0] is log else sources
    fresh = open_one_of_several(one_or_all, **options, indexed=False)  # type: ignore[arg-type]
    for part in fresh.parts:
        for known, source in zip(log.parts, sources, strict=True):
            if source is part.source:
                more = [
                    problem for problem in part.problems if problem.lost and problem not in known.problems
                ]
                for problem in [*more, CHANGED] if more else []:
                    known.note(problem)
    return fresh


@contextmanager
def as_open_log(what: Openable | Log, definitions: Definitions = (), decrypt: bool = False) -> Iterator[Log]:
    """Return *what* as an open Log, which is closed at the end if it was opened here.

    definitions, decrypt  as for ``logreel.open``
    """
    if isinstance(what, Log):
        if definitions:
            raise UsageError("the log is open already: give its definitions to logreel.open", path=what.name)
        yield what
    else:
        with open_log(what, definitions=definitions, decrypt=decrypt) as log:
            yield log


@contextmanager
def as_log_to_copy(what: Openable | Log, definitions: Definitions = ()) -> Iterator[Log]:
    """Return the same as ``as_open_log``, read from the log itself and not from an index cache.

    For functions that copy messages: what they write has to be what the log holds now.
    """
    with as_open_log(what, definitions) as log:
        yield read_itself(log, also_remote=False)
