"""Signals that end a command: a flag for loops that look at it, an exception elsewhere, where it leaves nothing locked.

A handler that raises at once strikes between any two steps of the main thread: inside of a pool that has begun to end
its threads, of a lock that it has just taken, of an import, or of ``__del__``, where Python drops the exception. So a
handler notes the signal first. The exception waits until the main thread is outside of such places, or in one of
their waits; if it gets lost, another one follows.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

#: Seconds between two looks whether the exception can be raised.
LOOK = 0.02
#: Seconds after which it is raised anywhere in the main thread.
PATIENCE = 2.0
#: Seconds that loops have to see the flag, unless they say otherwise.
LOOPS = 2.0
#: Seconds in which a command has to end after the exception, and seconds for threads that the process waits for then.
CLEANING, THREADS = 15.0, 1.0
#: Seconds in which a further signal is the same one: ``timeout``, terminals and shells send it twice.
SAME = 0.25
#: Modules in which an exception leaves locks taken, threads that nobody ends, or temporary files.
FRAGILE = {
    "threading", "queue", "concurrent.futures.thread", "concurrent.futures._base", "contextlib", "weakref",
    "tempfile", "shutil", "multiprocessing.process", __name__,
}  # fmt: skip
#: Functions that start a thread; nothing they call is interrupted.
STARTS = {"start", "submit", "_adjust_thread_count"}
WAIT = threading.Condition.wait.__code__
#: Functions of ``threading`` that wait for the end of a thread, and expect exceptions.
JOINS = {"_wait_for_tstate_lock", "join"}


class Interrupted(KeyboardInterrupt):
    """Raised for SIGINT."""


class Terminated(SystemExit):
    """Raised for SIGTERM and SIGHUP, with 128 + the number of the signal as exit code."""


class StopSignals:
    """The signals of a command, from ``__enter__`` to ``__exit__``; ignored signals stay ignored.

    received  number of the signal that ends the command; 0: none
    at_once   functions called before a further signal ends the process at once
    """

    def __init__(self) -> None:
        self.received = 0
        self.at_once: list[Callable[[], object]] = []
        self._since = 0.0
        self._old: dict[int, Any] = {}
        #: The exception that was raised, while anything holds it.
        self._raised: weakref.ref[BaseException] | None = None
        self._raised_at = 0.0
        #: How long loops that see the flag are waited for, innermost last; None: as long as they take.
        self._loops: list[float | None] = []
        #: Whether the watcher sent the signal.
        self._again = self._over = False
        self._bottom: FrameType | None = None
        self._hook = sys.unraisablehook

    def __enter__(self) -> Self:
        global _current
        if threading.current_thread() is not threading.main_thread() or _current is not None:
            return self
        own = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
        for name, usual in own.items():
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is usual:
                self._old[number] = usual
        _current = self
        self._bottom = sys._getframe(1)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._drop
        for number in self._old:
            signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        global _current
        self._over = True
        if _current is self:
            for number, handler in self._old.items():
                signal.signal(number, handler)
            sys.unraisablehook = self._hook
            self._bottom = None
            _current = None

    @property
    def code(self) -> int:
        """Exit code for the signal that was received."""
        return 128 + self.received

    def error(self) -> BaseException:
        """Return the exception for the signal that was received."""
        return Interrupted() if self.received == signal.SIGINT else Terminated(self.code)

    @contextmanager
    def seen_by_loop(self, seconds: float | None) -> Iterator[None]:
        """Raise no exception in the block, which looks at ``received``, unless it takes longer than *seconds*."""
        self._loops.append(seconds)
        try:
            yield
        finally:
            self._loops.pop()

    def answered(self) -> None:
        """Raise no exception for a signal that was received: the command has stopped its work, and only says so."""
        self._over = self.received != 0

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self._again = self._again, False
        now = time.monotonic()
        if not self.received:
            self.received, self._since = number, now
            # Not threading.Thread, whose start waits. Without a thread, the exception cannot wait.
            try:
                _thread.start_new_thread(self._watch, (threading.get_ident(),))
            except RuntimeError:
                raise self.error() from None
        elif not again:
            if now - self._since > SAME:
                self._end_at_once(number)
            return
        if not self._is_due(now):
            return
        if _is_safe(frame, self._bottom) or now - self._since > PATIENCE + (self._waits or 0.0):
            error = self.error()
            self._raised, self._raised_at = weakref.ref(error), now
            try:
                raise error
            finally:
                # Its traceback has this frame, which would keep it.
                del error

    @property
    def _waits(self) -> float | None:
        """Seconds for which loops are waited for; None: as long as they take."""
        return self._loops[-1] if self._loops else 0.0

    def _is_due(self, now: float) -> bool:
        """Return whether the exception is to be raised: not yet, or dropped by those that it met."""
        waits = self._waits
        if self._over or waits is None or now - self._since < waits:
            return False
        return self._raised is None or self._raised() is None

    def _watch(self, main: int) -> None:
        """Send the signal to the main thread again until the exception is raised; end a process that does not end."""
        while not self._over:
            time.sleep(LOOK)
            now = time.monotonic()
            if self._raised_at and not self._loops and now - self._raised_at > CLEANING:
                os._exit(self.code)
            if self._is_due(now):
                self._again = True
                with suppress(OSError):
                    signal.pthread_kill(main, self.received)
        self._end_without_threads()

    def _end_without_threads(self) -> None:
        """End the process if it waits at its end for threads that nobody wakes any more."""
        end = time.monotonic() + CLEANING
        while time.monotonic() < end:
            time.sleep(LOOK)
            if not threading.main_thread().is_alive():
                time.sleep(THREADS)
                os._exit(self.code)

    def _end_at_once(self, number: int) -> None:
        for function in self.at_once:
            with suppress(Exception):
                function()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _drop(self, unraisable: Any) -> None:
        """Say nothing about exceptions that Python drops while the command ends, also of objects that are half made."""
        if not self.received:
            self._hook(unraisable)


_current: StopSignals | None = None


def current() -> StopSignals:
    """Return the signals of the running command; of none if a verb is called without."""
    return _current or StopSignals()


def _is_safe(frame: FrameType | None, bottom: FrameType | None) -> bool:
    """Return whether an exception in *frame* leaves nothing locked and nothing half imported.

    bottom  frame that looks at no callers any more
    """
    if frame is None:
        return True
    innermost = frame.f_globals.get("__name__")
    # A wait has set *gotit* when it has begun to expect exceptions.
    waits = frame.f_code is WAIT and "gotit" in frame.f_locals
    if innermost in FRAGILE and not waits and frame.f_code.co_name not in JOINS:
        return False
    caller: FrameType | None = frame
    while caller is not None and caller is not bottom:
        module = caller.f_globals.get("__name__", "")
        if module.startswith("importlib.") or (module in FRAGILE and caller.f_code.co_name in STARTS):
            return False
        caller = caller.f_back
    return True
