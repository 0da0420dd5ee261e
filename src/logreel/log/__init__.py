"""Open logs: ``log.Log``, its Channels and Messages, whatever the format.

``scan.Scan`` is what a format says of a file; ``Log`` shows it, and ``Log.derive`` makes other logs of it.
``joined_log`` is a log of several files, ``tables`` reads channels as Arrow tables, ``times`` reads times that people
write, ``topic_match`` chooses channels. Everything above this floor may call it; logs are opened by ``registry.open``.
"""
