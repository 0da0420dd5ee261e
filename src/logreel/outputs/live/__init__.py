"""Sinks of a replay."""
