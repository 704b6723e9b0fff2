"""Tools of other programs, spoken to over MCP, the Model Context Protocol.

description   what config.yaml says about a server
link          one server's connection: made when needed, ended without leaving anything
servers       all of them, in one thread of their own
results       what a server answers, in words
tools         `find_tools` and `call_tool`, and what has to be asked before a call

The SDK takes most of a second to import and is not part of every installation, so nothing
here imports it before a server is needed.
"""
