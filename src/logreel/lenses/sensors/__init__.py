"""Decoders of raw sensor data, independent of the log format."""
