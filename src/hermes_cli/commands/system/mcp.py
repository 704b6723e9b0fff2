"""`hermes mcp`: an MCP server for other agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.connection import SDK
from hermes_cli import history
from hermes_cli.parser import add_command
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes mcp add                 install the MCP library
  hermes mcp serve               let other agents list, search and read conversations
  hermes mcp serve --allow-send  also let them send messages to chats

Configure `hermes mcp serve` as a stdio server in the other agent.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes mcp`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    examples = "examples:\n  hermes mcp serve\n  hermes mcp serve --allow-send\n"
    serve_parser = add_command(
        actions, "serve", "serve conversations to other agents", examples=examples, run=serve
    )
    serve_parser.add_argument(
        "--allow-send", action="store_true", help="also allow sending messages to chats"
    )
    add_command(
        actions,
        "add",
        "install the MCP library",
        examples="examples:\n  hermes mcp add\n",
        run=add,
    )


def serve(arguments: argparse.Namespace, _out: CommandOutput) -> int:
    """Serve on stdio until it is closed."""
    if not SDK.is_usable():
        raise UsageError("The MCP library is not installed. Run `hermes mcp add`.")
    from gateway import mcp_server  # noqa: PLC0415 - the library is slow to load

    db = history.open_for_writing() if arguments.allow_send else history.open_for_reading()
    with db:
        mcp_server.build_server(db, may_send=arguments.allow_send).run("stdio")
    return 0


def add(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Install the MCP library."""
    is_new = SDK.fetch(out.progress)
    out.text(f"The MCP library {'was' if is_new else 'is already'} installed.")
    return 0
