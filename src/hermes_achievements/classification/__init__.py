"""What tools, shell commands, paths, models and results are: tables and parsers."""
