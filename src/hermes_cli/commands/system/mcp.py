"""`hermes mcp`: be an MCP server for other agents, and fetch what that needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.connection import SDK
from hermes_cli import history
from hermes_cli.parser import add as add_command
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output

EXAMPLES: Final = """\
examples:
  hermes mcp add                 fetch the library for MCP, once
  hermes mcp serve               let another agent list, search and read conversations
  hermes mcp serve --allow-send  and send to chats

Another agent is told to start `hermes mcp serve` and speaks to it through its pipes.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes mcp`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    examples = "examples:\n  hermes mcp serve\n  hermes mcp serve --allow-send\n"
    serving = add_command(
        actions, "serve", "serve conversations to other agents", examples=examples, run=serve
    )
    serving.add_argument("--allow-send", action="store_true", help="let them send to chats, too")
    add_command(
        actions,
        "add",
        "fetch the library for MCP",
        examples="examples:\n  hermes mcp add\n",
        run=add,
    )


def serve(arguments: argparse.Namespace, _out: Output) -> int:
    """Serve until the pipes are closed."""
    if not SDK.is_usable():
        raise UsageError("this needs a library that is not here yet. Run: hermes mcp add")
    from gateway import mcp_server  # noqa: PLC0415 - the library is slow to load

    db = history.writing() if arguments.allow_send else history.reading()
    with db:
        mcp_server.build_server(db, may_send=arguments.allow_send).run("stdio")
    return 0


def add(_wishes: argparse.Namespace, out: Output) -> int:
    """Fetch the library."""
    is_new = SDK.fetch(out.progress)
    out.text(f"The library for MCP is {'here now' if is_new else 'here already'}.")
    return 0
