"""Command lines of logreel without the start of an interpreter: forks of a process that has imported everything.

For tests that look at what a command prints, writes and ends with. ``forked(*words)`` is the command line that runs
``logreel`` with these words so, in place of ``python -m logreel *words``; ``forked_python(*words)`` runs a script, or
``-c``. Starts, imports, libraries that are missing, and signals from outside are tested with processes.

The server, ``python -m support.harness.forked SOCKET``, has a single thread and never runs a command itself, so a fork
has the caches of a new process. What Python and libraries read from the environment when they start is that of the
server: where a caller has another one, its command runs in a process of its own. The server ends with its parent.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from support.harness.forked_client import PROCESS, connected

TESTS = Path(__file__).resolve().parents[2]
SRC = TESTS.parent / "src"
CLIENT = Path(__file__).with_name("forked_client.py")
_START = ["-I", "-S", str(CLIENT)]
#: Libraries that are imported before there are forks, and folders and modules of logreel that are not.
LIBRARIES = (
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyarrow.csv",
    "pandas",
    "duckdb",
    "google.protobuf.message",
)
LEFT_OUT = {"__main__", "static", "vendor", "testing", "daft", "ray"}
#: Seconds until a server has started, or ended, and until a client that has called says what it wants.
PATIENCE = 120
#: The thread of jemalloc, which pyarrow brings; jemalloc starts another one in forks.
ALLOCATOR = "jemalloc_bg_thd"
#: Variables that act when a process starts; others are read when they are used, or set in the fork.
AT_START = re.compile(r"PYTHON(?!WARNINGS$|UNBUFFERED$)|LD_|MALLOC_|LC_|LANG|OMP_|OPENBLAS_|ARROW_|GLIBC_")


def forked(*words: str | Path, path: str = str(SRC)) -> list[str]:
    """Return the command line that runs logreel with some words in a fork of the server of this process.

    The caller's PYTHONPATH must be *path*; each has a server of its own.
    """
    return forked_python("-m", "logreel", *words, path=path)


def forked_python(*words: str | Path, path: str = str(SRC)) -> list[str]:
    """Return the command line that runs a script, ``-c`` with code, or ``-m logreel`` as ``forked`` does."""
    address = _server(os.getpid(), path) if hasattr(os, "pidfd_open") else ""
    start = [sys.executable, *_START, address] if address else [sys.executable]
    return [*start, *map(str, words)]


def run_forked(
    command: list[str],
    variables: Mapping[str, str],
    seconds: float,
    cwd: str | Path | None = None,
    joined: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line of ``forked`` without its client, which is a process, too; there is nothing to read for it.

    joined  True: standard error is part of standard output
    """
    start, (address, *words) = command[1:4], command[4:] or [""]
    if start == _START:
        own = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
        with contextlib.ExitStack() as stack:
            reads, writes = zip(*(os.pipe() for _ in range(1 if joined else 2)), strict=True)
            for handle in reads:
                stack.callback(os.close, handle)
            nothing = os.open(os.devnull, os.O_RDONLY)
            try:
                streams = [nothing, writes[0], writes[-1]]
                server = connected(address, words, os.fspath(cwd or os.getcwd()), own, streams)
            finally:
                for handle in (nothing, *writes):
                    os.close(handle)
            # What is closed before the command has ended ends it.
            stack.callback(server.close)
            answer, outputs = _received(server.fileno(), reads, command, seconds)
        if answer != PROCESS:
            return subprocess.CompletedProcess(command, int(answer or b"70"), *outputs)
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if joined else subprocess.PIPE,
        env=variables,
        timeout=seconds,
        cwd=cwd,
        check=False,
    )


def _received(
    server: int, reads: Sequence[int], command: list[str], seconds: float
) -> tuple[bytes, list[bytes]]:
    """Return the answer of a server, and what a command writes to pipes, when all have ended."""
    end, found = time.monotonic() + seconds, {handle: bytearray() for handle in (server, *reads)}
    poll, left = select.poll(), set(found)
    for handle in found:
        poll.register(handle, select.POLLIN)
    while left:
        ready = poll.poll(max(0, end - time.monotonic()) * 1000)
        if not ready:
            raise subprocess.TimeoutExpired(command, seconds)
        for handle, _ in ready:
            if data := os.read(handle, 1 << 16):
                found[handle] += data
            else:
                poll.unregister(handle)
                left.remove(handle)
    answer, *outputs = map(bytes, found.values())
    return answer, outputs


@functools.cache
def _server(pid: int, path: str) -> str:
    """Start a server for a process, with a PYTHONPATH, and return its address; empty where it cannot start."""
    folder = tempfile.mkdtemp(prefix="logreel-forks-")
    address = os.path.join(folder, "socket")
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, address],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdout:
        if not select.select([server.stdout], [], [], PATIENCE)[0]:
            server.kill()
        ready = server.stdout.readline()
    if not ready:
        server.stdin.close()
        server.wait(PATIENCE)
        return ""

    def end() -> None:
        if os.getpid() == pid:
            server.stdin.close()  # type: ignore[union-attr]
            server.wait(PATIENCE)

    atexit.register(end)
    return address


# -- the server


def start_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that act when a process starts; no locale and the one that Python takes then are equal."""
    usual = {"", "C.UTF-8"}
    return {
        name: value
        for name, value in environment.items()
        if AT_START.match(name) and not (name in ("LC_ALL", "LC_CTYPE", "LANG") and value in usual)
    }


class Request:
    """A call of a client: connection, streams, and what it sent."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(PATIENCE)
        head, self.streams, _, _ = socket.recv_fds(connection, 4, 3)
        size, data = int.from_bytes(head, "big"), bytearray()
        while len(data) < size or not size:
            if not (part := connection.recv(size - len(data))):
                raise ConnectionError("the client has gone")
            data += part
        folder, mask, count, *words = (os.fsdecode(word) for word in bytes(data).split(b"\0"))
        self.folder, self.mask = folder, int(mask)
        self.arguments = words[: int(count)]
        pairs = (word.partition("=") for word in words[int(count) :])
        self.environment = {name: value for name, _, value in pairs}


class Server:
    """Forks of this process, by the handles of their ends and of the connections to their clients."""

    def __init__(self, address: str) -> None:
        self._own, self._filters, self._errors = (
            start_variables(os.environ),
            [*warnings.filters],
            sys.stdout.errors,
        )
        self._path = sys.path[1:]
        #: In a fork: what it runs; empty for the command line of logreel.
        self.code = ""
        # What a library would warn of is a fault here as with PYTHONWARNINGS=error.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _import_all()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._ends: dict[int, tuple[int, socket.socket]] = {}
        self._poll = select.poll()
        for handle in (0, self._listener.fileno()):
            self._poll.register(handle, select.POLLIN)

    def serve(self) -> Request | None:
        """Answer calls until the parent ends, None; return in each fork with its request."""
        while True:
            for handle, _ in self._poll.poll():
                if handle == 0:
                    for pid, _ in self._ends.values():
                        os.kill(pid, signal.SIGKILL)
                    return None
                if handle == self._listener.fileno():
                    if (request := self._accept()) is not None:
                        return request
                elif handle in self._ends:
                    self._end(handle)
                else:
                    # A client that is killed ends its command.
                    for pid, connection in self._ends.values():
                        if connection.fileno() == handle:
                            os.kill(pid, signal.SIGKILL)
                    # Unless the command has just ended by itself.
                    with contextlib.suppress(KeyError):
                        self._poll.unregister(handle)

    def _accept(self) -> Request | None:
        connection, _ = self._listener.accept()
        try:
            request = Request(connection)
        except OSError:
            connection.close()
            return None
        if start_variables(request.environment) != self._own:
            connection.sendall(PROCESS)
            connection.close()
        elif pid := os.fork():
            end = os.pidfd_open(pid)
            self._ends[end] = pid, connection
            for handle in (end, connection.fileno()):
                self._poll.register(handle, select.POLLIN)
        else:
            self._become(request)
            return request
        for handle in request.streams:
            os.close(handle)
        return None

    def _end(self, handle: int) -> None:
        """Tell a client how its command ended."""
        pid, connection = self._ends.pop(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(KeyError):
            self._poll.unregister(connection.fileno())
        self._poll.unregister(handle)
        os.close(handle)
        with contextlib.suppress(OSError):
            connection.sendall(b"%d" % code)
        connection.close()

    def _become(self, request: Request) -> None:
        """Make this fork what a process would be that a client starts."""
        self._listener.close()
        for handle, (_, connection) in self._ends.items():
            os.close(handle)
            connection.close()
        request.connection.close()
        for number, handle in enumerate(request.streams):
            os.dup2(handle, number)
            os.close(handle)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.umask(request.mask)
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update(request.environment)
        time.tzset()
        first, *words = request.arguments
        if first == "-m":
            sys.argv, folder = [str(SRC / "logreel/__main__.py"), *words[1:]], request.folder
        elif first == "-c":
            self.code, sys.argv, folder = words[0], [first, *words[1:]], ""
        else:
            self.code, sys.argv = Path(first).read_text(encoding="utf-8"), [first, *words]
            folder = os.path.dirname(os.path.realpath(first))
        sys.path[:] = [folder, *self._path]
        # Filters of imports come first, those of the environment before those of Python.
        imported = warnings.filters[: len(warnings.filters) - len(self._filters)]
        warnings.filters[:] = self._filters  # type: ignore[index]
        sys.warnoptions[:] = [one for one in os.environ.get("PYTHONWARNINGS", "").split(",") if one]
        warnings._processoptions(sys.warnoptions)  # type: ignore[attr-defined]
        warnings.filters[:0] = imported  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
        sys.stdin = sys.__stdin__ = standard_stream(0, "<stdin>", self._errors)
        sys.stdout = sys.__stdout__ = standard_stream(1, "<stdout>", self._errors)
        sys.stderr = sys.__stderr__ = standard_stream(2, "<stderr>", "backslashreplace")


def standard_stream(number: int, name: str, errors: str) -> io.TextIOWrapper:
    """Return a standard stream as Python opens it."""
    raw = io.FileIO(number, "rw"[number > 0], closefd=False)
    raw.name = name  # type: ignore[misc]
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    buffer = raw if at_once and number else io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    by_line = not at_once and (number == 2 or raw.isatty())
    stream = io.TextIOWrapper(buffer, "utf-8", errors, "\n", by_line, at_once)  # type: ignore[arg-type]
    stream.mode = "rw"[number > 0]  # type: ignore[misc]
    return stream


def _import_all() -> None:
    """Import what commands need; OpenBLAS gets one thread, as the command line gives it."""
    from logreel.cli.help import load_numpy
    from logreel.errors import MissingDependencyError

    load_numpy()
    for name in LIBRARIES:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        # An extra that is not installed is said where it is used.
        if LEFT_OUT.isdisjoint(parts) and (SRC / "logreel/kernels") not in path.parents:
            with contextlib.suppress(MissingDependencyError, ModuleNotFoundError):
                importlib.import_module(".".join(parts).removesuffix(".__init__"))
    gc.collect()
    gc.freeze()
    names = {Path(task.path, "comm").read_text().strip() for task in os.scandir("/proc/self/task")}
    if others := names - {"python", Path("/proc/self/comm").read_text().strip(), ALLOCATOR}:
        raise RuntimeError(f"an import has started threads, which forks would not have: {others}")


def _run(program: str) -> int:
    """Run a program with ``sys.argv``, and end as Python does: threads, functions of atexit, streams.

    program  code; empty for the command line of logreel
    """
    from logreel.cli import main

    code = 1
    try:
        if program:
            module = sys.modules["__main__"] = ModuleType("__main__")
            module.__file__ = sys.argv[0]
            exec(compile(program, sys.argv[0], "exec"), module.__dict__)  # noqa: S102 - a program of the tests
            code = 0
        else:
            code = main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)  # noqa: T201 - as Python does
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            traceback.print_exc()
            code = 120
    return code


def serve(address: str) -> None:
    """Serve until the parent ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server(address)
    os.write(1, b"ready\n")
    if server.serve() is not None:
        os._exit(_run(server.code))
    shutil.rmtree(os.path.dirname(address))


if __name__ == "__main__":
    serve(sys.argv[1])
