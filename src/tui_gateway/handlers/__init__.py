"""What each method does: a handler gets the connection and checked parameters."""
