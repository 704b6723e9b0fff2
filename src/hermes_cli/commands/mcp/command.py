"""`hermes mcp`: the MCP servers of the agent, and an MCP server for other agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.mcp.connection import SDK
from hermes_cli import history
from hermes_cli.commands.mcp import servers
from hermes_cli.parser import add_command
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  hermes mcp add tracker --url https://tracker.example/mcp --header 'Authorization: Bearer ${TOKEN}'
  hermes mcp list                list the servers and their state
  hermes mcp test files          connect to one and list its tools
  hermes mcp serve               let other agents list, search and read conversations
  hermes mcp serve --allow-send  also let them send messages to chats
  hermes mcp serve --http 127.0.0.1:8650
                                 serve over HTTP to clients with a key of `hermes api-keys`

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
    serve_parser.add_argument(
        "--allow-approve",
        action="store_true",
        help="also allow answering questions of running turns, such as approvals",
    )
    serve_parser.add_argument(
        "--http", metavar="HOST:PORT", help="serve over HTTP; callers need a key"
    )
    servers.configure(actions)


def serve(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Serve on stdio until it is closed, or over HTTP until the process is stopped."""
    if not SDK.is_usable():
        raise UsageError("The MCP library is not installed. Run `hermes mcp add`.")
    from gateway.mcp_server import server  # noqa: PLC0415 - the library is slow to load
    from gateway.process.config_loader import Secrets  # noqa: PLC0415 - as above

    address = _address(arguments.http) if arguments.http is not None else None
    options = server.McpOptions(arguments.allow_send, arguments.allow_approve)
    with history.open_for_writing() if any(options) else history.open_for_reading() as db:
        if address is None:
            server.build_server(db, options).run("stdio")
            return 0
        key = Secrets()("API_SERVER_KEY")
        try:
            server.serve_http(db, options, address, key, _announce(out))
        except (OSError, OverflowError) as error:
            raise UsageError(f"Cannot listen on {arguments.http}: {error}") from error
    return 0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise UsageError(f"invalid address {text!r}: use HOST:PORT, e.g. 127.0.0.1:8650")
    return host.strip("[]"), int(port)


def _announce(out: CommandOutput) -> Callable[[str], object]:
    return lambda url: out.text(f"Serving MCP at {url}. Press Ctrl+C to stop.")
