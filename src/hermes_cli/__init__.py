"""The command line: a parser with lazily loaded commands, and one module for output."""
