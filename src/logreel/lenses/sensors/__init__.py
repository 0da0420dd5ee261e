"""What sensors send, decoded: below the formats, for every log that carries it."""
