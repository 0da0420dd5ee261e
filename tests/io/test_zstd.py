"""zstd frames are packed and unpacked, also by the library that Python 3.14 has, or lacks."""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest
import zstandard

from logreel.io import zstd

DATA = np.random.default_rng(1).integers(0, 4, 300_000, np.uint8).tobytes()


def of_python_3_14(has_zstd: bool) -> Any:
    """Return the module as Python 3.14 has it, whose library is ``backports.zstd`` elsewhere, or without its zstd."""
    package = types.ModuleType("compression")
    if has_zstd:
        here = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        vars(package)["zstd"] = pytest.importorskip(here)
    spec = importlib.util.spec_from_file_location("zstd_of_python_3_14", zstd.__file__)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(sys, "version_info", (3, 14))
        changed.setitem(sys.modules, "compression", package)
        changed.setattr(importlib.util, "find_spec", lambda name: spec if has_zstd else None)
        spec.loader.exec_module(module)
    assert (module.zstd is package.zstd) if has_zstd else (module.zstandard is zstandard)
    return module


@pytest.fixture(params=["installed", "3.14", "3.14 without zstd"])
def codec(request: pytest.FixtureRequest) -> Any:
    return zstd if request.param == "installed" else of_python_3_14("without" not in request.param)


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
