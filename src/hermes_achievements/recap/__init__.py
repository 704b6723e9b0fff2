"""Summaries of a year, a month or a week."""
