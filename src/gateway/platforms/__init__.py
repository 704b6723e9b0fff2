"""Chat platforms, one module each; none is imported before it is enabled."""
