"""The agent: runs the turns of a conversation; text is stored before it is shown.

agent        AIAgent: a conversation bound to the store
turn         the loop of model requests and tool calls
events       typed events of a turn
providers    models behind one protocol; a provider never raises
tools        the built-in tools
permissions  which commands need approval
context      the system prompt, the context window and compaction
memory, mcp  long-term memory; tools of MCP servers
"""
