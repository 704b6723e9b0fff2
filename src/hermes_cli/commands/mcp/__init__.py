"""`hermes mcp`."""
