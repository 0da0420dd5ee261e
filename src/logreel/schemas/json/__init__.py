"""JSON messages: decoding them by a JSON Schema or without one, and JSON Schemas of Layouts.

Called by ``schemas.languages``, and by formats whose messages are JSON.
"""
