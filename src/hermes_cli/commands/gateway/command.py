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
    function: str  # with its module
    examples: str = ""  # with `;` between them; the name without
    has_json: bool = False


ACTIONS: Final = (
    GatewayAction("run", "run the gateway in the foreground", "process.run"),
    GatewayAction("start", "start the gateway in the background", "process.start"),
    GatewayAction("stop", "stop the running instance", "process.stop"),
    GatewayAction("restart", "restart after current turns finish", "process.restart"),
    GatewayAction(
        "status",
        "show whether it is running, and pending messages",
        "process.print_status",
        has_json=True,
    ),
    GatewayAction(
        "logs",
        "show the log",
        "logs.logs",
        "logs; logs -f; logs --message 42; logs -n 200 --level warning",
        has_json=True,
    ),
    GatewayAction(
        "trace", "trace a message", "logs.trace", "trace 42; trace 1718 --json", has_json=True
    ),
    GatewayAction(
        "quarantine",
        "list messages and updates that could not be handled",
        "logs.quarantine",
        "quarantine; quarantine 42; quarantine 42 --retry; quarantine 42 --delete",
        has_json=True,
    ),
    GatewayAction(
        "channels", "list known chats", "logs.channels", "channels; channels --json", has_json=True
    ),
    GatewayAction(
        "handoff", "hand a conversation off to a chat app", "logs.handoff", "handoff last telegram"
    ),
    GatewayAction("add", "install a platform's library", "setup.add", "add telegram; add matrix"),
    GatewayAction(
        "install",
        "install a system service (systemd or launchd)",
        "setup.install",
        "install; install --print",
    ),
    GatewayAction("uninstall", "remove the system service", "setup.uninstall"),
)


MATRIX_ACTIONS: Final = (
    GatewayAction(
        "status",
        "show the device, its keys and messages that cannot be read",
        "matrix.status",
        "matrix status; matrix status --json",
        has_json=True,
    ),
    GatewayAction(
        "verify", "confirm the emoji of a verification", "matrix.verify", "matrix verify"
    ),
    GatewayAction(
        "cross-sign",
        "sign the device with new cross-signing keys",
        "matrix.cross_sign",
        "matrix cross-sign",
    ),
    GatewayAction(
        "reset",
        "start with a new device, e.g. after the keys were lost",
        "matrix.reset",
        "matrix reset",
    ),
)
MATRIX_KEY_ACTIONS: Final = (
    GatewayAction(
        "export",
        "write the room keys to an encrypted file",
        "matrix.export_keys",
        "matrix keys export keys.txt",
    ),
    GatewayAction(
        "import",
        "read room keys from an encrypted file",
        "matrix.import_keys",
        "matrix keys import keys.txt",
    ),
)
MATRIX_EXAMPLES: Final = """\
examples:
  hermes gateway matrix status                 show the device and its keys
  hermes gateway matrix verify                 confirm the emoji of a verification
  hermes gateway matrix keys export keys.txt   write the room keys to a file
"""
MATRIX_KEYS_EXAMPLES: Final = """\
examples:
  hermes gateway matrix keys export keys.txt
  hermes gateway matrix keys import keys.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes gateway`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in ACTIONS:
        _add_arguments(_add_action(actions, action), action.name)
    matrix = add_command(actions, "matrix", "manage encryption keys on Matrix", MATRIX_EXAMPLES)
    matrix_actions = matrix.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in MATRIX_ACTIONS:
        _add_matrix_arguments(_add_action(matrix_actions, action), action.name)
    keys = add_command(matrix_actions, "keys", "export and import room keys", MATRIX_KEYS_EXAMPLES)
    key_actions = keys.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in MATRIX_KEY_ACTIONS:
        _add_matrix_arguments(_add_action(key_actions, action), action.name)


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], action: GatewayAction
) -> argparse.ArgumentParser:
    examples = (f"hermes gateway {each}" for each in (action.examples or action.name).split("; "))
    child = add_command(actions, action.name, action.purpose, *examples, run=_runner(action))
    if action.has_json:
        add_json_option(child)
    return child


def _add_matrix_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "verify":
        parser.add_argument("--yes", action="store_true", help="the emoji are the same")
        parser.add_argument("--no", action="store_true", help="the emoji differ")
    elif name == "reset":
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    elif name in {"export", "import"}:
        parser.add_argument("file", metavar="FILE", help="file with room keys")
    if name == "export":
        parser.add_argument("--force", action="store_true", help="replace an existing file")


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
            "message",
            metavar="MESSAGE",
            nargs="?",
            type=int,
            help="message number (shows its content)",
        )
        parser.add_argument("--delete", action="store_true", help="delete the message")
        parser.add_argument("--retry", action="store_true", help="let it be handled again")
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
        module, function = action.function.split(".")
        loaded = import_module(f"hermes_cli.commands.gateway.{module}")
        return int(getattr(loaded, function)(arguments, out))

    return run_action
