"""Health of the robot in a recording: detectors of faults, one module each."""
