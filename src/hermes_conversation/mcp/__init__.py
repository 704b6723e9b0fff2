"""The MCP servers of config.yaml and of projects, for commands and pages."""
