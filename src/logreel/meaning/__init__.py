"""What the content of a log means over time, worked out once for everything that shows or judges it.

Lenses recognise what one channel is; here lie the answers about the whole log: ``tracks`` (jumps, gaps, lengths,
parts), ``scenes`` (what there is in space at one moment), ``robots`` (their links and joints), ``cameras`` (what is
drawn on pictures), ``frames`` and ``transforms`` (links, trees, lookups), ``curves``, ``charts``, ``columns`` and
``pyramids`` (numbers over time), ``notes`` (what people said about it, in a file beside the log, the only one written
here). Nothing here draws. ``ops``, ``formats/*/meaning`` and ``outputs`` take from here and keep no rule of their own.
"""
