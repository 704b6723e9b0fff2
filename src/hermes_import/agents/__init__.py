"""One module per agent."""
