"""Tools of MCP servers (Model Context Protocol).

config        servers in config.yaml
connection    one server's connection, opened on demand
server_pool   all servers, in one background thread
tools         `find_tools` and `call_tool`, and the approval of calls

The SDK takes most of a second to import and is optional, so it is imported only when a
server is needed.
"""
