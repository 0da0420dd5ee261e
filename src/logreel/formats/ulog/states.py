"""Names of the numbers of fields that hold a state, such as flight modes."""

from __future__ import annotations

from logreel.formats.ulog.meaning.sensors import FIXES
from logreel.formats.ulog.modes import MAIN_STATES, nav_state_names
from logreel.log.log import Log

#: Names by topic, field and number that are the same in all releases.
STATES = {
    "commander_state": {"main_state": MAIN_STATES},
    "vehicle_gps_position": {"fix_type": FIXES},
    "sensor_gps": {"fix_type": FIXES},
    "battery_status": {"warning": {0: "none", 1: "low", 2: "critical", 3: "emergency", 4: "failed"}},
}
#: ``arming_state``; releases name the numbers below 2 differently.
ARMING = {0: "Initializing", 1: "Disarmed", 2: "Armed"}


def states(log: Log) -> dict[str, dict[str, dict[int, str]]]:
    """Return names of states by topic, field and number; further instances of a topic have those of the first."""
    known = {topic: dict(fields) for topic, fields in STATES.items()}
    if "vehicle_status" in log.channels:
        names = nav_state_names(log["vehicle_status"])
        known["vehicle_status"] = {
            "nav_state": names,
            "nav_state_user_intention": names,
            "arming_state": ARMING,
        }
    by_field = {}
    for topic in log.channels:
        fields = known.get(topic.partition("[")[0])
        if fields is not None:
            by_field[topic] = fields
    return by_field
