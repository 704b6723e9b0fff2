"""Reads a history into the ledger: scanner, workers, progress."""
