"""Answers of the simulator, computed from a recording alone.

``queries`` and ``info`` print what its client prints; ``replay`` makes the steps of its replay, also as a log;
``metrics`` has the log class of its scenario runner. ``api`` is the public module ``logreel.carla``, and ``commands``
are those of ``logreel carla``. The rest of the format uses ``queries`` and ``info`` for its summaries.
"""
