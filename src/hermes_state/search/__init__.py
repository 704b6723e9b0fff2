"""Full-text search over the history, in a file of its own that may be deleted at any time."""
