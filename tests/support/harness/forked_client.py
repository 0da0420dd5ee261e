"""Run a command line of Python in a fork of the server of ``forked``, as if this process were it.

Run as ``python -I -S forked_client.py SOCKET ARGUMENT…``: -m logreel, -c, or a script. Standard streams, folder,
environment and mask of new files are those of this process, and so is the exit code, or the signal. Imports as little
as possible: this is the most that such a call costs.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

#: Answer of a server that cannot run a command as the client would be.
PROCESS = b"process"


def connected(
    address: str, arguments: list[str], folder: str, variables: dict[bytes, bytes], streams: list[int]
) -> socket:
    """Return the connection to a server that was asked to run a command line; it answers when that has ended."""
    mask = os.umask(0)
    os.umask(mask)
    words = [os.fsencode(word) for word in (folder, str(mask), str(len(arguments)), *arguments)]
    request = b"\0".join(words + [name + b"=" + value for name, value in variables.items()])
    server = socket(AF_UNIX, SOCK_STREAM)
    server.connect(address)
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in streams)
    server.sendmsg([len(request).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
    server.sendall(request)
    return server


def main(address: str, *arguments: str) -> int:
    """Return the exit code of the command."""
    server = connected(address, [*arguments], os.getcwd(), dict(os.environb), [0, 1, 2])
    answer = server.recv(16)
    if answer == PROCESS:
        os.execv(sys.executable, [sys.executable, *arguments])
    code = int(answer or b"70")
    if code < 0:
        import signal

        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
