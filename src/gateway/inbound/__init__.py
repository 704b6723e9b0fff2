"""From a received message to a finished turn: access control, inbox, handler, turn runner."""
