"""Run a command line of Python in a fork of the server of ``forked``, as if this process were it.

Run as ``python -I -S forked_client.py SOCKET ARGUMENT…``: -m logreel, -c, or a script. Standard streams, folder,
environment and mask of new files are those of this process, and so is the exit code, or the signal. Imports as little
as possible: this is the most that such a call costs.
"""

import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket


def main(address: str, *arguments: str) -> int:
    """Return the exit code of the command."""
    mask = os.umask(0)
    os.umask(mask)
    words = [os.fsencode(word) for word in (os.getcwd(), str(mask), str(len(arguments)), *arguments)]
    variables = [name + b"=" + value for name, value in os.environb.items()]
    request = b"\0".join(words + variables)
    server = socket(AF_UNIX, SOCK_STREAM)
    server.connect(address)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    server.sendmsg([len(request).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
    server.sendall(request)
    answer = server.recv(16)
    if answer == b"process":
        os.execv(sys.executable, [sys.executable, *arguments])
    code = int(answer or b"70")
    if code < 0:
        import signal

        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
