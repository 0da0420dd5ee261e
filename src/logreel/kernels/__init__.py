"""Compiled loops over bytes: floor 0, imports nothing of logreel."""
