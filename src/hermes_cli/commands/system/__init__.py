"""Commands for the installation: settings, backups, checks, shell completion, MCP."""
