"""`hermes sessions` and its subcommands."""
