"""The conversation server: JSON-RPC over standard input and output or WebSockets.

The terminal UI and the dashboard are its clients.
"""
