"""The web dashboard: conversations, search, analytics, gateway, plugins and settings."""
