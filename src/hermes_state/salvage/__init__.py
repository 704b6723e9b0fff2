"""Recovers the rows of a damaged history without SQLite's help."""
