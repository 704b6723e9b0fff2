"""`hermes gateway`, `hermes pairing` and `hermes send`."""
