"""Checkpoints: what the agent changed in a folder, kept outside of it, to be taken back."""
