"""Exchange two files or folders in one step, so that a name never means nothing."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

#: Arguments of renameat2 (linux/fs.h, fcntl.h).
_EXCHANGE, _AT_FDCWD = 2, -100
_NOT_POSSIBLE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def exchange(one: Path, two: Path) -> bool:
    """Exchange the names of two existing files or folders atomically; return False where the system cannot do that.

    Raises OSError if it fails for another reason.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    paths = os.fsencode(one), os.fsencode(two)
    if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_POSSIBLE:
        return False
    raise OSError(code, os.strerror(code), os.fspath(two))
