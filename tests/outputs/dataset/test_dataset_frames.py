"""Pictures of every encoding, one at a time: JPEG, PNG, raw, H.264; in any order, and broken ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.outputs.dataset.building import BrokenPicturesError, first_shape, frames
from logreel.outputs.media.pictures import add_stream, encode, png
from support.builders.training_logs import HEIGHT, WIDTH, number_of, picture

av = pytest.importorskip("av")
SECOND = 10**9
COUNT = 40


def jpeg(pixels: np.ndarray) -> bytes:
    context = av.CodecContext.create("mjpeg", "w")
    context.width, context.height, context.pix_fmt = pixels.shape[1], pixels.shape[0], "yuvj420p"
    from fractions import Fraction

    context.time_base = Fraction(1, 10)
    frame = av.VideoFrame.from_ndarray(pixels, "rgb24").reformat(format="yuvj420p")
    packets: list[Any] = [*context.encode(frame), *context.encode(None)]
    assert len(packets) == 1
    return bytes(packets[0])


def packets(count: int, key_every: int) -> list[bytes]:
    """Pictures 0, 1 … as packets of one H.264 stream."""
    import io
    from fractions import Fraction

    with av.open(io.BytesIO(), "w", format="h264") as file:
        stream = add_stream(file, (WIDTH, HEIGHT), Fraction(1, 10), key_every, {"tune": "zerolatency"})
        found = [bytes(p) for i in range(count) for p in encode(stream, picture(i), i, Fraction(1, 10))]
        found += [bytes(p) for p in stream.encode(None)]
    assert len(found) == count
    return found


def camera(path: Path, data: Sequence[bytes], kind: str, times: Sequence[int] | None = None) -> Path:
    with logreel.create(path) as w:
        ch = w.add_channel("/camera", logreel.Schema("sensor_msgs/CompressedImage", "ros1msg", ""))
        for time, one in zip(times or [i * SECOND // 10 for i in range(len(data))], data, strict=True):
            w.write(ch, SECOND + time, {"format": kind, "data": one})
    return path


def numbers(path: Path, at: Sequence[float], **options: Any) -> list[int]:
    times = np.array([SECOND + round(t * SECOND) for t in at], np.int64)
    with logreel.open(path) as log:
        found = frames(log["/camera"], times, options.get("size"), options.get("shape"))
        return [number_of(pixels) for pixels in found]


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_pictures_are_found_by_their_times(tmp_path: Path, kind: str) -> None:
    make = jpeg if kind == "jpeg" else png
    path = camera(tmp_path / "x.bag", [make(picture(i)) for i in range(COUNT)], kind)
    assert numbers(path, [0.3, 0.3, 0.4, 1.0, 3.9]) == [3, 3, 4, 10, 39]


@pytest.mark.parametrize("key_every", [1, 7, 100])
def test_video_is_decoded_from_the_key_frame_before(tmp_path: Path, key_every: int) -> None:
    path = camera(tmp_path / "x.bag", packets(COUNT, key_every), "h264")
    assert numbers(path, [2.5, 2.6, 2.6, 3.0]) == [25, 26, 26, 30]
    assert numbers(path, [0.0, 3.9]) == [0, 39]


def test_key_frame_may_be_far_away(tmp_path: Path) -> None:
    path = camera(tmp_path / "x.bag", packets(150, 200), "h264")
    assert numbers(path, [14.0, 14.9]) == [140 % 96, 149 % 96]


def test_pictures_may_be_in_any_order(tmp_path: Path) -> None:
    order = np.random.default_rng(2).permutation(COUNT).tolist()
    data = [png(picture(i)) for i in order]
    path = camera(tmp_path / "x.mcap", data, "png", [i * SECOND // 10 for i in order])
    assert numbers(path, [0.5, 0.6, 2.0, 3.9]) == [5, 6, 20, 39]


def test_last_of_several_pictures_at_a_time_counts(tmp_path: Path) -> None:
    path = camera(tmp_path / "x.bag", [png(picture(i)) for i in range(3)], "png", [0, 0, SECOND])
    assert numbers(path, [0.0, 1.0]) == [1, 2]


def test_broken_pictures_are_named_after_all_others(tmp_path: Path) -> None:
    data = [png(picture(i)) for i in range(5)]
    data[1], data[3] = data[1][:-9], png(np.zeros((8, 8, 3), np.uint8))
    path = camera(tmp_path / "x.bag", data, "png")
    seen: list[tuple[int, ...]] = []
    with logreel.open(path) as log:
        coming = frames(log["/camera"], np.arange(5) * SECOND // 10 + SECOND, None, None)
        with pytest.raises(BrokenPicturesError) as error:
            seen.extend(pixels.shape for pixels in coming)
    assert seen == [(HEIGHT, WIDTH, 3)] * 5
    assert error.value.times == {SECOND + SECOND // 10, SECOND + 3 * SECOND // 10}


def test_shape_is_that_of_the_first_sound_picture(tmp_path: Path) -> None:
    path = camera(tmp_path / "x.bag", [b"no", png(picture(1))], "png")
    with logreel.open(path) as log:
        times = log["/camera"].times
        assert first_shape(log["/camera"], times, None) == (HEIGHT, WIDTH)
        assert first_shape(log["/camera"], times[:1], None) is None
        assert first_shape(log["/camera"], times, (32, 16)) == (16, 32)


def test_pictures_are_scaled_without_loss_of_their_colours(tmp_path: Path) -> None:
    path = camera(tmp_path / "x.bag", [png(picture(5))], "png")
    with logreel.open(path) as log:
        (small,) = frames(log["/camera"], log["/camera"].times, (WIDTH // 2, HEIGHT // 2), None)
    assert small.shape == (HEIGHT // 2, WIDTH // 2, 3)
    assert abs(int(small[10, 5, 0]) - int(picture(5)[20, 10, 0])) <= 2
