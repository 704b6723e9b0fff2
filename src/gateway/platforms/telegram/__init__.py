"""Telegram, as a bot of its Bot API."""
