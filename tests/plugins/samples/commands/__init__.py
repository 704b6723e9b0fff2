"""Slash commands and commands of the command line."""


def setup(parser):
    actions = parser.add_subparsers(dest="action")
    actions.add_parser("join").set_defaults(func=lambda arguments: print("joined"))


def greet_setup(parser):
    parser.add_argument("name")


def greet(arguments):
    print(f"hello {arguments.name}")
    return 0


async def later(words):
    return f"later: {words}"


def register(ctx):
    ctx.register_command("greet", lambda words: f"hello {words}", description="greet somebody")
    ctx.register_command("later", handler=later, args_hint="[words]")
    ctx.register_cli_command("greet", "greet somebody", greet_setup, greet)
    ctx.register_cli_command(
        name="meet", help="meetings", setup_fn=setup, description="Join meetings."
    )
