"""The Agent Client Protocol server: conversations of the daemon in editors."""
