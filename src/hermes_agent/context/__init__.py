"""The context window: system prompt, token budget, compaction, history repair."""
