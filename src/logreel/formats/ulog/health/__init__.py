"""Detectors of faults that only PX4 flights show, one module each."""

from __future__ import annotations

from logreel.formats.ulog.health.battery import BROWN_OUT
from logreel.formats.ulog.health.estimator import ESTIMATOR
from logreel.formats.ulog.health.failsafe import FAILSAFE
from logreel.formats.ulog.health.motors import MOTORS
from logreel.formats.ulog.health.remote_control import REMOTE
from logreel.formats.ulog.health.satellites import INTERFERENCE
from logreel.formats.ulog.health.sensors import FROZEN_SENSOR
from logreel.formats.ulog.health.vibration import VIBRATION

DETECTORS = (BROWN_OUT, INTERFERENCE, VIBRATION, ESTIMATOR, MOTORS, REMOTE, FAILSAFE, FROZEN_SENSOR)
