"""The embedded engine: one SQLite file, one writing connection per process."""
