"""Bytes of messages as trees of nodes, compiled to programs that decode and encode many messages at once.

``nodes`` are the parts that a definition consists of; ``layout.Layout`` is a whole message. ``decode`` and ``encode``
turn single messages into Python values and back, ``arrow`` many of them into columns. Called by everything that reads
or writes fields; knows neither logs nor definition languages.
"""
