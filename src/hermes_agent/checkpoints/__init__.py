"""Checkpoints: what the agent changed in a folder, kept outside of it, so that it can be undone."""
