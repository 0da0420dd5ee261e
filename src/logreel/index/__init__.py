"""Where the messages of a log are, and when: arrays of blocks, rules for times and sizes, and selections of rows.

A reader builds ``block_table.Blocks`` and ``rules.ChannelRules``; ``message_index.MessageIndex`` answers from them
which messages lie in an interval, in the order of the file or of time. ``gather`` reads columns of many messages at
once, ``joined`` is the index of several files. Messages have no Python objects here. Called by ``log`` and by formats.
"""
