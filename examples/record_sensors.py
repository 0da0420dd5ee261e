"""Record several sensors of a robot into one log, each read by a thread of its own.

    python examples/record_sensors.py drive.vel --seconds 10

This is the job that Koblenz sensor logs were made for: a car or rescue robot with a laser scanner and the data of the
car. The sensors here are simulated; replace `read` of each by the driver of the real one. OUT may also be a bag or an
MCAP: then the same fields are stored in the language of that format.

What the program shows:

* each sensor is a live source: a class with a name and a method `run`, which logreel calls in a thread of its own
* a full queue loses messages of the sensor that is too fast, counts them, and never blocks a driver
* Ctrl-C completes the log; after a crash, everything written until a second before is in `drive.vel.active`
"""

from __future__ import annotations

import argparse
import math
import signal
import struct
import time

import logreel
from logreel.plugin import Field, FixedArray, Layout, Scalar, Sequence, String, Struct

#: A scan of 270 degrees, and the state of the car, as the driver of each sensor delivers them.
SCAN = Layout(
    Struct(
        (
            Field("sensor_type", String()),
            Field("sensor_name", String()),
            Field("ranges", Sequence(Scalar("uint32"))),
        )
    )
)
CAR = Layout(
    Struct(
        (
            Field("speed", Scalar("int32")),
            Field("rpm", Scalar("int32")),
            Field("throttle", Scalar("float32")),
            Field("reserved", FixedArray(Scalar("float32"), 4)),
        )
    )
)


class Sensor:
    """A sensor that delivers messages at a fixed rate.

    topic   channel of the log; Koblenz logs name channels by types of messages
    period  seconds between two messages
    """

    def __init__(self, topic: str, period: float, schema: logreel.Schema | Layout, start: float) -> None:
        self.name = self.topic = topic
        self._period, self._schema, self._start = period, schema, start

    def read(self, n: int) -> bytes | dict[str, object]:
        """Return message number *n*: its fields, or the bytes that the definition of the channel describes."""
        raise NotImplementedError

    def run(self, feed: logreel.Feed) -> None:
        """Read the sensor until the recording stops."""
        channel = feed.channel(self.topic, self._schema)
        if channel is None:
            return
        n, first = 0, time.monotonic()
        # The clock of a Koblenz log begins with the program; other formats have the time of day.
        while not feed.wait(max(0.0, first + n * self._period - time.monotonic())):
            now = (
                time.time_ns()
                if isinstance(self._schema, Layout)
                else int((time.monotonic() - self._start) * 1e9)
            )
            feed.put(channel, now, self.read(n))
            n += 1


class Scanner(Sensor):
    """A simulated laser scanner in front of a wall."""

    def read(self, n: int) -> dict[str, object]:
        """Return a scan: distances in mm."""
        wall = 2000 + 10 * (n % 100)
        ranges = [round(wall / max(0.2, math.cos(math.radians((i - 540) / 4)))) for i in range(1081)]
        return {"sensor_type": "Hokuyo_UTM-30LX", "sensor_name": "front", "ranges": ranges}


class Car(Sensor):
    """Simulated data of the car, as packed bytes from its bus."""

    def read(self, n: int) -> bytes:
        """Return speed in km/h, revolutions per minute, and throttle, as a frame of 28 bytes."""
        return struct.pack("<2i5f", n % 50, 900 + 10 * n, 12.5, 0, 0, 0, 0)


def main() -> None:
    """Record until the time is over, or until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("out", help="drive.vel, drive.bag, drive.mcap …")
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()

    stopped = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    start = time.monotonic()
    koblenz = args.out.endswith(".vel")
    sensors = [
        Car("OBDDataM", 0.02, logreel.Schema("OBDDataM", "koblenz") if koblenz else CAR, start),
        Scanner(
            "LaserRange2DDataM/front",
            0.025,
            logreel.Schema("LaserRange2DDataM", "koblenz") if koblenz else SCAN,
            start,
        ),
    ]
    done = logreel.record(sensors, args.out, duration=f"{args.seconds}s", stop=lambda: stopped)
    for channel in done.channels:
        print(f"{channel.topic}: {channel.messages} messages")
    print(f"{done.lost} messages lost, {done.size} bytes in {done.path}")


if __name__ == "__main__":
    main()
