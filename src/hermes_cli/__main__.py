"""`python -m hermes_cli`: what the launcher runs."""

from hermes_cli.main import entry

entry()
