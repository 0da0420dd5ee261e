"""Health of the robot in a recording: detectors of faults, and ``health``, which runs them.

A detector is a function from a Log to Detections with an interval, evidence and a bound, or NotAssessed. ``sensors``
says which channels are sensors, and finds those that repeat or jump; ``rates`` finds channels that stop, pause, slow
down or lose messages; ``clock`` compares times in messages with those of logging; ``links`` looks at transforms.

A detector for all formats gets a name in ``DETECTORS``; one for a format belongs to its folder.
"""
