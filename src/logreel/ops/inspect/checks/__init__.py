"""Checks of logs of any format: one module per check, each with a function from a Log to Findings."""
