"""Commands for histories of other agents."""
