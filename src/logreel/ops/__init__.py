"""Work on logs that needs no output format.

An operation takes a Log, or what ``logreel.open`` takes, and returns plain data or writes logs. rewrite: logs from
logs. inspect: answers about one log, or two. health: faults of the robot. query: SQL and columns. record: messages
while they happen. replay: messages by a clock.

``logreel`` offers the functions to users; ``outputs``, ``fleet`` and ``cli`` call them.
"""
