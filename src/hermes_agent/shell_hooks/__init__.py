"""Hooks that are shell commands, in the format of Claude Code.

config   the commands for each event, from config.yaml and from trusted files of a project
events   what a command gets on its standard input
runner   runs one command, with limits
invoker  calls the commands at the hooks of a turn
failures failed commands, for `hermes hooks list`
transcripts  the conversation as a file
"""
