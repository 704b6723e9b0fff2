"""Discord, as a bot."""
