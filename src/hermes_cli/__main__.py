"""`python -m hermes_cli` starts the command line."""

from hermes_cli.main import entry

entry()
