"""Protocol buffers: wire format, message descriptions, decoding and encoding.

``wire`` and ``build`` need no library. Others use the ``protobuf`` package, and are imported when first needed.
"""
