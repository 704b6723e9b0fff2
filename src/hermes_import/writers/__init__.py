"""Conversations as sessions of other agents."""
