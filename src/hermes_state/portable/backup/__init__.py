"""Backups: a snapshot of the store and the settings in an archive."""
