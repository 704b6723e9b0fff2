"""Reads the histories of other agents and stores them as conversations.

`sources` has the interface of an agent's history, `agents/` one module per agent, `importer`
stores what is new, `follower` watches for more.
"""
