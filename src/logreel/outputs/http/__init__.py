"""HTTP on this machine, shared by ``serve``, ``view`` and the Foxglove sink.

``routes`` has the one kind of request table: paths, typed parameters, kinds of answers, and the OpenAPI document made
from it. ``guard`` decides who may ask (host name, origin, token) before anything else is looked at, ``server`` listens
with limits of time, number and bytes, and ``answer`` sends streams and sentences about errors. ``websocket_gate`` puts
the same guard in front of a WebSocket server that has none. Nothing here knows logs or what is served.
"""
