"""Genuine rosbag, which lives in the Python of the system where it is installed."""

from __future__ import annotations

import functools
import subprocess

import pytest

SYSTEM = "/usr/bin/python3"


@functools.cache
def _installed() -> bool:
    try:
        return not subprocess.run([SYSTEM, "-c", "import genpy, rosbag"], capture_output=True).returncode
    except OSError:
        return False


def genuine() -> None:
    """Skip the test where it is not installed."""
    if not _installed():
        pytest.skip("rosbag of ROS is not installed (Debian: python3-rosbag)")
