"""Bytes of files: reading, writing and following them, before anything is known of logs.

``source.Source`` is a file, an object on a server or bytes that are read; ``chunks.Chunks`` numbers its bytes and those
that are unpacked. ``append_file.Appender``, ``two_pass`` and ``atomic_file`` write files that appear complete or not at
all. ``growing_file`` watches a file that another process writes. Every floor may call it.
"""
