"""What the agent can do. One file for each kind of tool; `base` says what a tool is."""
