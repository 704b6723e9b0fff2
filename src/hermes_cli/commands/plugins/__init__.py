"""`hermes plugins`, `hermes hooks`, and the commands that plugins add."""
