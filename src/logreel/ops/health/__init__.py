"""Health of the robot in a recording: detectors of faults, and ``health``, which runs them.

A detector is a function from a Log to Detections with an interval, evidence and a bound, or NotAssessed. ``detectors``
has those for all formats: of sensors and steady channels, of their clocks, and of transforms.

A detector for all formats gets a name in ``DETECTORS``; one for a format belongs to its folder.
"""
