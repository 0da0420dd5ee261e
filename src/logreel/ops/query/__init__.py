"""Questions to logs as tables: SQL, conditions, polars, values at common times.

``sql`` runs queries over ``topic_table``, ``where`` selects messages by conditions, ``polars`` scans lazily, ``align``
joins channels by time, ``held`` makes intervals of values; ``record_batches`` reads channels in batches of bounded
size. Verbs, outputs and fleet call these; what messages mean is in ``logreel.meaning``.
"""
