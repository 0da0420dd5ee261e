"""Changes of logs: names, frames, times, fields, metadata, and what others should not see."""
