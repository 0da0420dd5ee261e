"""Builders of logs, a folder for each format: valid and invalid ones, byte by byte, without code of the readers."""
