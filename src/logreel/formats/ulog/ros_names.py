"""Names of topics and types by which ROS tools of PX4 know the topics of a ULog: ``/px4/…`` and ``px4_msgs/…``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from logreel.formats.ulog.schema_maker import base_name
from logreel.log.log import Log


def ros_names(log: Log) -> Mapping[str, tuple[str, str]]:
    """Return topic and type by topic of a ULog, as PX4's own conversion to bags names them.

    Instances have their number at the end, ``/px4/sensor_accel_1``; a topic with only the first instance has none.
    """
    found, instances = {}, dict[str, set[int]]()
    for topic, ch in log.channels.items():
        if not ch.reserved and ch.schema.encoding == "ulog":
            base, number = base_name(topic.partition("@")[0])
            instances.setdefault(base, set()).add(number)
    for topic, ch in log.channels.items():
        base, at, segment = topic.partition("@")
        base, number = base_name(base)
        if base in instances and not ch.reserved:
            several = instances[base] != {0}
            name = (
                f"/px4/{base.strip('/')}"
                + (f"_{number}" if several else "")
                + (f"_log{segment}" if at else "")
            )
            found[topic] = (name, f"px4_msgs/{type_of(base)}")
    return found


def type_of(name: str) -> str:
    """Return the type of a format: ``VehicleAttitude`` for ``vehicle_attitude``."""
    return "".join(word.title() for word in re.split(r"[^A-Za-z0-9]+", name)) or "Message"
