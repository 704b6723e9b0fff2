"""The command line: a parser with lazily loaded commands, and the one module that prints."""
