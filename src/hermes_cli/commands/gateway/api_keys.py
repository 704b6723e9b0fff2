"""`hermes api-keys`: keys for clients of the gateway's API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_cli import history
from hermes_cli.output import TableColumn
from hermes_cli.parser import add_command, add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.roles import Role
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes api-keys add ci --role guest
  hermes api-keys list
  hermes api-keys remove ci
"""
NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
COLUMNS: Final = (TableColumn("name", style="cyan"), TableColumn("role"), TableColumn("created"))


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes api-keys`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_parser = add_command(actions, "add", "create an API key", EXAMPLES, run=add)
    add_parser.add_argument("name", metavar="NAME", help="name of the client")
    add_parser.add_argument(
        "--role",
        choices=[str(role) for role in Role],
        default=str(Role.GUEST),
        help="rights of the client (default: guest)",
    )
    add_json_option(add_parser)
    add_command(actions, "list", "list API keys and their roles", EXAMPLES, run=show, has_json=True)
    remove_parser = add_command(actions, "remove", "delete an API key", EXAMPLES, run=remove)
    remove_parser.add_argument("name", metavar="NAME", help="name of the client")


def add(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Create a key and print it once."""
    name = arguments.name
    if not NAME_PATTERN.fullmatch(name):
        raise UsageError("Invalid name. Use up to 64 letters, digits, - and _.")
    with SessionDB() as db:
        key = db.people.add_api_key(name, arguments.role)
    if key is None:
        raise UsageError(f"An API key named {name} already exists.")
    if arguments.json:
        out.json({"name": name, "role": arguments.role, "key": key})
        return 0
    out.text(key)
    out.note(f"Created the API key {name} (role: {arguments.role}). It is not shown again.")
    return 0


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List the names and roles of keys."""
    with history.open_or_create() as db:
        keys = db.people.api_keys()
    if arguments.json:
        out.json([key._asdict() for key in keys])
        return 0
    rows = [(key.name, key.role, human_format.date(key.created_at)) for key in keys]
    if rows:
        out.table(COLUMNS, rows)
    out.text("API_SERVER_KEY has the role owner.")
    return 0


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Delete a key."""
    with SessionDB() as db:
        is_removed = db.people.remove_api_key(arguments.name)
    if not is_removed:
        raise UsageError(f"No API key is named {arguments.name}.")
    out.text(f"Removed the API key {arguments.name}.")
    return 0
