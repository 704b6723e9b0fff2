"""Scheduled jobs: the scheduler that hands occurrences to the inbox, and their runs."""
