"""Handlers of the RPC methods; each gets the connection and validated parameters."""
