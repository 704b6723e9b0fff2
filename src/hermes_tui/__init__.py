"""The full-screen terminal UI: a conversation, its tools and its questions, on one screen."""
