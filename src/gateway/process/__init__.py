"""The gateway process: startup, platform connections, HTTP server, health."""
