"""What can be wrong with a log of any format: one module per battery, each a function from a Log to Findings."""
