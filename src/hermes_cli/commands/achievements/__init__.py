"""`hermes achievements` and `hermes recap`."""
