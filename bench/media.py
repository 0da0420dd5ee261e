"""Images to video and a flight to a Rerun recording, compared with a fresh copy of the log; CPU time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
import logreel
from biglog import make
from harness import Job, compare, run
from logreel.schemas.ros1msg import define
from support.samples.grey_jpeg import jpeg

#: Pictures of a camera, and bytes of each.
TYPE = "sensor_msgs/CompressedImage"
PICTURES, SIZE = 2000, 100_000
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
SETUP = "import logreel, tempfile\nfolder = tempfile.mkdtemp()\n"
TO_VIDEO = SETUP + "import logreel.outputs.media.mp4, av\n"
TO_RRD = SETUP + "import logreel.outputs.rerun, rerun\n"
VIDEO = Job(
    "convert x.mp4, JPEG as it is",
    "logreel.convert(path, folder + '/x.mp4')",
    TO_VIDEO,
)
#: What a plain script does: the messages of the same reader, one after another.
PLAIN = Job(
    "the same by hand, message by message",
    """
with logreel.open(path) as log, av.open(folder + "/x.mp4", "w") as out:
    stream = out.add_mux_stream("mjpeg", width=64, height=48)
    for message in log.messages():
        packet = av.Packet(bytes(message.decode()["data"]))
        packet.stream, packet.time_base = stream, Fraction(1, 1_000_000)
        packet.pts = packet.dts = message.time // 1000
        out.mux(packet)
""",
    TO_VIDEO + "from fractions import Fraction",
)
PICTURES_RRD = Job(
    "convert x.rrd, JPEG as it is",
    "logreel.convert(path, folder + '/x.rrd')",
    TO_RRD,
)
FLIGHT = Job(
    "convert x.rrd, a curve per field",
    "logreel.convert(path, folder + '/x.rrd')",
    TO_RRD,
    bound="memory does not grow with the log",
)


def pictures() -> Path:
    """Return a cached bag of images of the size of a camera's."""
    out = Path(tempfile.gettempdir()) / f"logreel-bench-pictures-{PICTURES}.bag"
    if not out.exists():
        part = out.with_suffix(".part.bag")
        small = jpeg(np.full((48, 64), 100, np.uint8))
        noise = np.random.default_rng(1).integers(0, 255, SIZE, np.uint8).tobytes()
        with logreel.create(part, force=True) as writer:
            camera = writer.add_channel("/camera", logreel.Schema(TYPE, "ros1msg", define(TYPE).text))
            for number in range(PICTURES):
                data = small[:-2] + noise[: SIZE - number % 1000] + small[-2:]
                writer.write(camera, number * 33_000_000 + 1, {"format": "jpeg", "data": data})
        part.rename(out)
    return out


def main() -> None:
    """Print the ratios, and how memory grows with the log."""
    compare("pictures of a camera", str(pictures()), COPY, [VIDEO, PLAIN, PICTURES_RRD], 3, cpu=True)
    compare("flight", str(make(100)), COPY, [FLIGHT], 3, cpu=True)
    for name, path, job in (
        ("video of 200 MB", pictures(), VIDEO),
        ("recording of 100 MB", make(100), FLIGHT),
        ("recording of 200 MB", make(200), FLIGHT),
    ):
        print(f"  {name:44} {run(job, str(path), memory=True)[2] / 1e6:9.0f} MB of memory")


if __name__ == "__main__":
    main()
