"""JSON messages, and JSON Schema as their definition."""
