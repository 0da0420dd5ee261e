"""Translation of channels to the well-known schemas of Foxglove, for files and live connections.

``exchange`` finds what is translated and is the transform that writes it; ``messages`` has the well-known schemas and
what fills their messages. ``outputs.convert``, ``outputs.merge_formats`` and the sink of a replay
call ``exchange``.
"""
