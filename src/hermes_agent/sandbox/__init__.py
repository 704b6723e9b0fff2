"""An operating-system sandbox for every program that runs for the agent."""
