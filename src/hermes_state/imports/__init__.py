"""Conversations of other agents: what was imported, and storing what is new of them."""
