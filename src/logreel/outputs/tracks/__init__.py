"""Positions as KML, GPX and GeoJSON: one module with ``write`` for each, called by ``outputs/write``.

``tracks`` has what they share: tracks of a job with valid positions only, cut where ``logreel.meaning.tracks`` says,
and numbers and texts as these formats want them.
"""
