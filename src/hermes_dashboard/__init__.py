"""The dashboard: conversations, what became of them and what they amount to, on a web page."""
