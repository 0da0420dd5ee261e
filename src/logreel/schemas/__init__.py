"""Definition languages: what the text or the bytes of a schema say of messages.

``languages`` has one object for each language, which everything above asks; a folder for each language has its parts.
``catalogue`` is what known definitions of all languages have in common, with those that the user added.
"""
