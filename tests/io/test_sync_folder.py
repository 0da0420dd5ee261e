"""Folders are synced after a file in them got its name; a disk that fails then is an error."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from logreel.io.atomic_file import sync_folder


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINVAL, errno.ENOTSUP])
def test_a_folder_that_cannot_be_synced_is_an_error_unless_the_system_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(handle: int) -> None:
        assert stat.S_ISDIR(os.fstat(handle).st_mode)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    if code in (errno.EINVAL, errno.ENOTSUP):
        sync_folder(tmp_path)
    else:
        with pytest.raises(OSError, match=os.strerror(code)) as caught:
            sync_folder(tmp_path)
        assert caught.value.filename == str(tmp_path)
