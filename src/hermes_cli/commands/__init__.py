"""One module per command; `hermes_cli.parser.COMMANDS` lists them."""
