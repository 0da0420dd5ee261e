"""The protobuf library without compiled modules, which is what a free-threaded Python may have."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import numpy as np
from google.protobuf.internal import api_implementation
from logreel.errors import DamagedError
from logreel.index.gather import PayloadRange
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder
from logreel.schemas.protobuf.types import Types

assert api_implementation.Type() == "python"
decoder = ProtobufDecoder(Types().find("bosdyn.api.OperatorComment"))
# A text of two bytes that are no UTF-8, and one of a letter.
data = b"\\x0a\\x02\\xda\\xda" + b"\\x0a\\x01a"
assert decoder.decode_message(None, memoryview(data)[4:], None)["message"] == "a"
try:
    decoder.decode_message(None, memoryview(data)[:4], None)
except DamagedError:
    piece = PayloadRange(np.frombuffer(data, np.uint8), np.array([0, 4]), np.array([4, 3]))
    assert [row for row, _ in decoder.decode_batch(None, decoder.layout, piece, np.arange(2)).bad] == [0]
    print("damaged")
"""


def test_a_text_that_is_not_utf8_is_damage() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
    )
    assert (done.stdout, done.returncode) == ("damaged\n", 0), done.stderr
