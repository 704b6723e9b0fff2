"""Vim keys of the input: the keys of normal mode as changes of a text."""
