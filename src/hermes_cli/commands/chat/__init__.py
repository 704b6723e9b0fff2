"""`hermes chat`, `hermes tui` and `hermes serve`."""
