"""`hermes dashboard` and `hermes demo`."""
