"""Rules without a database: errors, time, paths, settings, keys, messages, policy, hooks."""
