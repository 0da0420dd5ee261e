"""Translation of channels to the well-known schemas of Foxglove, for files and live connections."""
