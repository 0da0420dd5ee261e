"""Where a replay can go."""
