"""Protocol buffers: wire format, message types, decoding and encoding.

``wire`` and ``encoder`` need no library. Others use the ``protobuf`` package, and import it when it is first needed.
"""
