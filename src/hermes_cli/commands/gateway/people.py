"""`hermes people`: list people and change their roles."""

from __future__ import annotations

import time
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

    from gateway.people import KnownPerson
    from hermes_cli.output import CommandOutput

EXAMPLES: Final = """\
examples:
  hermes people                               list people and their roles
  hermes people set telegram:42 --role owner  make a person an owner
  hermes people remove telegram:42            revoke a person's access
"""
LIST_EXAMPLES: Final = "examples:\n  hermes people list\n  hermes people list --json\n"
SET_EXAMPLES: Final = "examples:\n  hermes people set telegram:42 --role member\n"
REMOVE_EXAMPLES: Final = "examples:\n  hermes people remove telegram:42\n"
COLUMNS: Final = (
    TableColumn("person", style="cyan"),
    TableColumn("name", flexible=True),
    TableColumn("role"),
    TableColumn("access", optional=True),
    TableColumn("last seen", optional=True),
)
LOCAL_LINE: Final = "The local user, the local socket and API_SERVER_KEY have the role owner."


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes people`."""
    parser.set_defaults(run=show, json=False)
    add_json_option(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=False)
    add_command(
        actions, "list", "list people and their roles", LIST_EXAMPLES, run=show, has_json=True
    )
    set_parser = add_command(actions, "set", "set the role of a person", SET_EXAMPLES, run=set_role)
    set_parser.add_argument("person", metavar="PERSON", help="PLATFORM:USER, as listed, or a name")
    set_parser.add_argument(
        "--role", required=True, choices=[str(role) for role in Role], help="the new role"
    )
    remove_parser = add_command(
        actions, "remove", "revoke a person's access", REMOVE_EXAMPLES, run=remove
    )
    remove_parser.add_argument(
        "person", metavar="PERSON", help="PLATFORM:USER, as listed, or a name"
    )


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List people and their roles."""
    with history.open_or_create() as db:
        people = _known(db)
    if arguments.json:
        out.json([item.facts() for item in people])
        return 0
    if people:
        out.table(COLUMNS, [_row(item) for item in people])
    out.text(LOCAL_LINE)
    return 0


def _row(item: KnownPerson) -> tuple[str, ...]:
    access = "paired" if item.is_paired else "configured" if item.is_configured else "none"
    seen = "" if item.last_seen is None else human_format.ago(item.last_seen, time.time())
    return str(item.person), item.name, str(item.role), access, seen


def set_role(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Set the role of a person."""
    role = Role(arguments.role)
    with SessionDB() as db:
        found = _find(db, arguments.person)
        _require_possible(db, found, role)
        db.people.set_role(*found.person, role)
    out.text(f"{found.person} has the role {role}.")
    return 0


def _require_possible(db: SessionDB, found: KnownPerson, role: Role) -> None:
    from gateway.people import require_possible_role  # noqa: PLC0415 - `--help` needs no gateway
    from gateway.process.config_loader import config_of_home  # noqa: PLC0415 - as above

    require_possible_role(db, config_of_home(), found.person, role)


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Revoke the access of a person."""
    with SessionDB() as db:
        found = _find(db, arguments.person)
        had_role = db.people.forget_role(*found.person)
        had_access = db.pairings.revoke(*found.person)
    if found.is_configured:
        out.text(f"{found.person} is also named in the configuration: remove it there, too.")
    elif had_access or had_role:
        out.text(f"Revoked the access of {found.person}.")
    return 0


def _known(db: SessionDB) -> list[KnownPerson]:
    from gateway.people import known_people  # noqa: PLC0415 - `--help` needs no gateway
    from gateway.process.config_loader import config_of_home  # noqa: PLC0415 - as above

    return known_people(db, config_of_home())


def _find(db: SessionDB, text: str) -> KnownPerson:
    people = _known(db)
    exact = [item for item in people if str(item.person) == text]
    named = [item for item in people if text in {item.name, item.person.user_id}]
    found = exact or named
    if len(found) != 1:
        count = "Several people match" if found else "Unknown person"
        raise UsageError(f"{count}: {text}. `hermes people` lists them as PLATFORM:USER.")
    return found[0]
