"""Rules without a database: errors, time, paths, settings, keys, messages, policy, hooks."""

__version__ = "0.1.0"
