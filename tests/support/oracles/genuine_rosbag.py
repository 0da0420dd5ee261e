"""Use of genuine rosbag, which may be installed in the Python of the system."""

from __future__ import annotations

import functools
import subprocess

import pytest

SYSTEM = "/usr/bin/python3"


@functools.cache
def _installed(module: str) -> bool:
    try:
        return not subprocess.run([SYSTEM, "-c", f"import {module}"], capture_output=True).returncode
    except OSError:
        return False


def genuine(*messages: str) -> None:
    """Skip the test if rosbag or one of the packages of *messages* is not installed."""
    for module in ("genpy", "rosbag", *(f"{package}.msg" for package in messages)):
        if not _installed(module):
            package = module.removesuffix(".msg").replace("_", "-").replace("genpy", "rosbag")
            pytest.skip(f"no {module} in {SYSTEM} (Debian: python3-{package})")
