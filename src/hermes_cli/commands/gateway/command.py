"""`hermes gateway`: answer chats, always on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_cli.parser import add, add_json

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import Output

EXAMPLES: Final = """\
examples:
  hermes gateway add telegram   fetch what a platform needs, and say what to do next
  hermes gateway run            answer chats, until Ctrl-C
  hermes gateway start          the same in the background
  hermes gateway status         does it run, and does anything wait?
  hermes gateway logs -f        what it does
  hermes gateway install        let the system start it
"""


class Action(NamedTuple):
    """A word behind `hermes gateway`; its module is imported when it is used."""

    name: str
    purpose: str
    module: str
    function: str
    examples: tuple[str, ...]
    has_json: bool = False


ACTIONS: Final = (
    Action("run", "answer chats here, until Ctrl-C", "process", "run", ("run",)),
    Action("start", "answer chats in the background", "process", "start", ("start",)),
    Action("stop", "end the one that runs", "process", "stop", ("stop",)),
    Action("restart", "finish what runs and begin anew", "process", "restart", ("restart",)),
    Action(
        "status", "whether one runs, and what waits", "process", "tell", ("status",), has_json=True
    ),
    Action(
        "logs",
        "what it has done",
        "logs",
        "logs",
        ("logs", "logs -f", "logs --message 42", "logs -n 200 --level warning"),
        has_json=True,
    ),
    Action(
        "trace",
        "what became of a message",
        "logs",
        "trace",
        ("trace 42", "trace 1718 --json"),
        has_json=True,
    ),
    Action(
        "channels",
        "the chats it knows",
        "logs",
        "channels",
        ("channels", "channels --json"),
        has_json=True,
    ),
    Action(
        "handoff",
        "go on with a conversation in a chat",
        "logs",
        "handoff",
        ("handoff last telegram",),
    ),
    Action("add", "fetch what a platform needs", "setup", "add", ("add telegram", "add matrix")),
    Action(
        "install",
        "let the system start it: systemd or launchd",
        "setup",
        "install",
        ("install", "install --print"),
    ),
    Action("uninstall", "let the system start it no more", "setup", "uninstall", ("uninstall",)),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes gateway`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in ACTIONS:
        lines = "\n".join(f"  hermes gateway {one}" for one in action.examples)
        child = add(
            actions, action.name, action.purpose, examples=f"examples:\n{lines}\n", run=_run(action)
        )
        _arguments(child, action.name)
        if action.has_json:
            add_json(child)


def _arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "logs":
        parser.add_argument("-f", "--follow", action="store_true", help="and what comes")
        parser.add_argument("-n", "--lines", type=int, default=50, help="how many (default 50)")
        parser.add_argument("--message", type=int, help="only what concerns this message")
        parser.add_argument("--level", choices=("debug", "info", "warning", "error"),
                            default="info", help="and what is more serious")  # fmt: skip
    elif name == "trace":
        parser.add_argument("message", metavar="MESSAGE", help="its number, or the platform's id")
    elif name == "handoff":
        parser.add_argument("session", metavar="SESSION", help="an id, a title, or `last`")
        parser.add_argument("platform", metavar="PLATFORM", help="where it goes on")
    elif name == "add":
        parser.add_argument("platform", metavar="PLATFORM", help="such as telegram")
    elif name == "install":
        parser.add_argument("--print", action="store_true", dest="only_print",
                            help="only show what would be written")  # fmt: skip


def _run(action: Action) -> Any:
    def carried_out(arguments: argparse.Namespace, out: Output) -> int:
        module = import_module(f"hermes_cli.commands.gateway.{action.module}")
        return int(getattr(module, action.function)(arguments, out))

    return carried_out
