"""Recordings of Rerun: ``rrd`` writes them, also for the live sink and the importer of the command line.

The content of lenses becomes archetypes, other numbers become curves; Rerun is imported inside of functions.
"""
