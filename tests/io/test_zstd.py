"""zstd frames are packed and unpacked, also by the library that Python 3.14 has."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest

from logreel.io import zstd

DATA = np.random.default_rng(1).integers(0, 4, 300_000, np.uint8).tobytes()


def of_python_3_14() -> Any:
    """Return the module as Python 3.14 has it; elsewhere with ``backports.zstd``, which is the same library."""
    backport = pytest.importorskip("backports.zstd")
    spec = importlib.util.spec_from_file_location("zstd_of_python_3_14", zstd.__file__)
    module = importlib.util.module_from_spec(spec)
    known = sys.version_info, sys.modules.get("compression")
    package = types.ModuleType("compression")
    vars(package)["zstd"] = backport
    sys.version_info, sys.modules["compression"] = (3, 14), package
    try:
        spec.loader.exec_module(module)
    finally:
        sys.version_info = known[0]
        del sys.modules["compression"]
        if known[1] is not None:
            sys.modules["compression"] = known[1]
    return module


@pytest.fixture(params=["installed", "3.14"])
def codec(request: pytest.FixtureRequest) -> Any:
    return zstd if request.param == "installed" else of_python_3_14()


def content(stream: Any, step: int) -> bytes:
    out, read = bytearray(), bytearray(step)
    while n := stream.readinto(memoryview(read)):
        out += read[:n]
    return bytes(out)


def test_what_is_packed_unpacks_to_the_same_and_states_its_size(codec: Any) -> None:
    packed = memoryview(codec.compressor(3)(DATA))
    assert len(packed) < len(DATA) / 3
    assert codec.stated_size(packed) == len(DATA)
    assert codec.unpack(packed) == DATA
    assert codec.unpack(memoryview(codec.compressor(1)(b""))) == b""


@pytest.mark.parametrize("step", [1000, 1 << 20])
def test_a_stream_has_all_frames(codec: Any, step: int) -> None:
    pack = codec.compressor(3)
    assert content(codec.reader(memoryview(pack(DATA) + pack(b"more") + pack(DATA))), step) == (
        DATA + b"more" + DATA
    )


def test_a_cut_frame_gives_what_is_there(codec: Any) -> None:
    cut = memoryview(codec.compressor(3)(DATA))[:-100]
    with pytest.raises(codec.ZstdError):
        codec.unpack(cut)
    got = content(codec.reader(cut), 4096)
    assert DATA.startswith(got)


def test_other_bytes_are_no_frame(codec: Any) -> None:
    for call in (codec.stated_size, codec.unpack, lambda data: content(codec.reader(data), 100)):
        with pytest.raises(codec.ZstdError):
            call(memoryview(b"no zstd frame at all"))
