"""The agent: one conversation, one turn at a time, every word in the store before it is shown.

events      what happens in a turn, as typed events
providers   models behind one protocol; a provider never raises
tools       what the agent can do
approvals   what it may do without asking
agent       AIAgent: a conversation bound to the store
"""
