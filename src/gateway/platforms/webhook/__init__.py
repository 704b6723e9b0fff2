"""Signed HTTP requests from other programs."""
