"""Health of the robot in a recording: detectors of faults, and ``health``, which runs them.

A detector is a function from a Log to Detections with an interval, evidence and a bound, or NotAssessed. ``sensors``
says which channels are sensors or steady, and finds those that stop, pause, slow down, lose messages, repeat or jump;
``clock`` compares times in messages with those of logging; ``links`` looks at transforms.

A detector for all formats gets a name in ``DETECTORS``; one for a format belongs to its folder.
"""
