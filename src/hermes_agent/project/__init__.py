"""What the files of a project give to the agent.

folders       the repository of a working folder
instructions  AGENTS.md and CLAUDE.md
files         files that run code or widen rights, read and hashed once
trust         which of them the user trusts
"""
