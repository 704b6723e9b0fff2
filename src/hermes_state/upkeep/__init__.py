"""Maintenance: health checks, background indexing, crash recovery, statistics."""
