"""Interfaces that plugins of hermes-agent use: modules that they import, and methods of `ctx`.

docs/reference/plugins-of-hermes-agent.md lists what is available and what is refused, and why.
"""
