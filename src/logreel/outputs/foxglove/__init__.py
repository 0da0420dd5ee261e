"""What channels mean, in the schemas that Foxglove and others know, independent of what the messages go to."""
