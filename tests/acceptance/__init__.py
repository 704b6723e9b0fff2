"""Promises tested with real processes, real files and real faults."""
