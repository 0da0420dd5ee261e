"""Answers about a log as plain data, each with ``as_dict`` for JSON.

They are info, summary, stats, schema, params, text, check, diff and du. ``check`` runs functions from a Log to
Findings: those of ``time_checks`` read times and positions of messages only; a ``contract`` states the requirements of
a user, and ``learn`` writes one from good logs. Both take the figures of a channel over time from ``windows``.

``logreel`` offers these functions to users; reports, the viewer, the catalogue of a fleet and the command line call
them.
"""
