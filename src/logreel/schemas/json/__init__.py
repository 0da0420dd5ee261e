"""Messages that are JSON text, and JSON Schema as what says which columns they have."""
