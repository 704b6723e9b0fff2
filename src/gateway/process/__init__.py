"""The gateway process: start-up, platform connections, HTTP server, health."""
