"""Long-term memory: its files, and the review that fills them."""
