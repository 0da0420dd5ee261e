"""Protocol buffers: the wire, descriptions of messages, and messages as Layouts and Arrow columns.

``wire`` needs no library. The others use the ``protobuf`` package, and are imported when first needed.
"""
