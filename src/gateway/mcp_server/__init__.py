"""Hermes as an MCP server for other agents, over standard input and output or HTTP."""
