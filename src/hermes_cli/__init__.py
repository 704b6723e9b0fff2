"""The command line: a thin layer over the store and the settings."""

__version__ = "0.1.0"
