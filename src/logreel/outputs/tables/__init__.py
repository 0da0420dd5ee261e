"""Tables as files: CSV, Parquet, Arrow and lines of JSON, of one channel, of several, and of several logs.

A format is a module with functions that take schema and record batches: ``csv``, ``parquet``, ``arrow``, ``ndjson``,
``rows``. ``combined`` joins channels to one table, ``table_of_logs`` does so for logs, ``results`` has the formats for
results of a query, and ``growing`` appends to tables of a log that is still written. Called by ``outputs.write`` and
the command line; what a table contains is decided in ``ops.query``.
"""
