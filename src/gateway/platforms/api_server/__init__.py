"""An OpenAI-compatible HTTP API."""
