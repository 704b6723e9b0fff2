"""`hermes gateway`: run and inspect the gateway for chat apps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_cli.parser import add_command, add_json_option

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes gateway add telegram   install a platform's library and print the next steps
  hermes gateway run            run in the foreground
  hermes gateway start          run in the background
  hermes gateway status         show whether it is running, and pending messages
  hermes gateway logs -f        follow the log
  hermes gateway install        install it as a system service
"""


class GatewayAction(NamedTuple):
    """An action of `hermes gateway`; its module is imported on use."""

    name: str
    purpose: str
    module: str
    function: str
    examples: tuple[str, ...]
    has_json: bool = False


ACTIONS: Final = (
    GatewayAction("run", "run the gateway in the foreground", "process", "run", ("run",)),
    GatewayAction("start", "start the gateway in the background", "process", "start", ("start",)),
    GatewayAction("stop", "stop the running instance", "process", "stop", ("stop",)),
    GatewayAction(
        "restart", "restart after current turns finish", "process", "restart", ("restart",)
    ),
    GatewayAction(
        "status",
        "show whether it is running, and pending messages",
        "process",
        "print_status",
        ("status",),
        has_json=True,
    ),
    GatewayAction(
        "logs",
        "show the log",
        "logs",
        "logs",
        ("logs", "logs -f", "logs --message 42", "logs -n 200 --level warning"),
        has_json=True,
    ),
    GatewayAction(
        "trace",
        "trace a message",
        "logs",
        "trace",
        ("trace 42", "trace 1718 --json"),
        has_json=True,
    ),
    GatewayAction(
        "quarantine",
        "list messages and updates that could not be handled",
        "quarantine",
        "quarantine",
        ("quarantine", "quarantine 42", "quarantine 42 --delete", "quarantine --json"),
        has_json=True,
    ),
    GatewayAction(
        "channels",
        "list known chats",
        "logs",
        "channels",
        ("channels", "channels --json"),
        has_json=True,
    ),
    GatewayAction(
        "handoff",
        "hand a conversation off to a chat app",
        "logs",
        "handoff",
        ("handoff last telegram",),
    ),
    GatewayAction(
        "add", "install a platform's library", "setup", "add", ("add telegram", "add matrix")
    ),
    GatewayAction(
        "install",
        "install a system service (systemd or launchd)",
        "setup",
        "install",
        ("install", "install --print"),
    ),
    GatewayAction("uninstall", "remove the system service", "setup", "uninstall", ("uninstall",)),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes gateway`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in ACTIONS:
        lines = "\n".join(f"  hermes gateway {example}" for example in action.examples)
        child = add_command(
            actions,
            action.name,
            action.purpose,
            examples=f"examples:\n{lines}\n",
            run=_runner(action),
        )
        _add_arguments(child, action.name)
        if action.has_json:
            add_json_option(child)


def _add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "logs":
        parser.add_argument("-f", "--follow", action="store_true", help="keep printing new lines")
        parser.add_argument(
            "-n", "--lines", type=int, default=50, help="number of entries (default: 50)"
        )
        parser.add_argument("--message", type=int, help="filter by inbox message number")
        parser.add_argument("--level", choices=("debug", "info", "warning", "error"),
                            default="info", help="minimum level (default: info)")  # fmt: skip
    elif name == "trace":
        parser.add_argument(
            "message", metavar="MESSAGE", help="inbox number, or the platform's message ID"
        )
    elif name == "quarantine":
        parser.add_argument(
            "message", metavar="MESSAGE", nargs="?", type=int, help="its number: show the content"
        )
        parser.add_argument("--delete", action="store_true", help="delete the message")
    elif name == "handoff":
        parser.add_argument("session", metavar="SESSION", help="session ID, title or `last`")
        parser.add_argument("platform", metavar="PLATFORM", help="target platform")
    elif name == "add":
        parser.add_argument("platform", metavar="PLATFORM", help="platform, e.g. telegram")
    elif name == "install":
        parser.add_argument("--print", action="store_true", dest="only_print",
                            help="print the service file without writing it")  # fmt: skip


def _runner(action: GatewayAction) -> Any:
    def run_action(arguments: argparse.Namespace, out: CommandOutput) -> int:
        module = import_module(f"hermes_cli.commands.gateway.{action.module}")
        return int(getattr(module, action.function)(arguments, out))

    return run_action
