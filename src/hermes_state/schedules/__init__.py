"""Scheduled jobs and their occurrences."""
