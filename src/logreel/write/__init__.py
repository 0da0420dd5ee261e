"""Writing logs: what all formats have in common.

``writer.Writer`` is what users write with; in ``format_writer``, a ``FormatWriter`` writes messages of one format, and
a ``SchemaMaker`` makes its schemas. ``log_copier.LogCopier`` copies what only logs of the same format have.
Called by formats, which extend these classes, and by what rewrites or records logs.
"""
