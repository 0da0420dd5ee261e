"""HTTP on this machine, shared by ``serve``, ``view`` and the Foxglove sink.

``server`` listens with limits of time, number and bytes; its guard decides who may ask (host name, origin, token)
before anything else is looked at. ``routes`` has the one kind of request table: paths, typed parameters, kinds of
answers, and the OpenAPI document made from it; it sends streams and sentences about errors. ``websocket_gate`` puts the
guard in front of a WebSocket server that has none. Nothing here knows logs or what is served.
"""
