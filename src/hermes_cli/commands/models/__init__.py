"""`hermes models` and `hermes setup`."""
