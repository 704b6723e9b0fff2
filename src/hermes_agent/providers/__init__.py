"""Models behind one protocol. A provider never raises: failure is its last event."""
