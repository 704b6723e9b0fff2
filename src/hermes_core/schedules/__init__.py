"""Schedules: expressions, the rules they become, and what is due after a downtime."""
