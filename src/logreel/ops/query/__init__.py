"""Questions to logs as tables: SQL, conditions, polars, values at common times.

``sql`` runs queries over ``topic_table``, ``where`` selects messages and intervals by conditions, ``polars`` scans
lazily, ``align`` joins channels by time; ``record_batches`` reads channels in batches of bounded size. Verbs, outputs
and fleet call these; what messages mean is in ``logreel.meaning``.
"""
