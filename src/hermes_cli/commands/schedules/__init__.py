"""Commands for scheduled jobs."""
