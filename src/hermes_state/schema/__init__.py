"""The tables shared with the original, and Hermes' own."""
