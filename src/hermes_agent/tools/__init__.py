"""The tools of the agent, one file for each kind; `base` defines what a tool is."""
