"""`hermes pairing`: manage who may chat with the agent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gateway.platforms.registry import PlatformRegistry
from hermes_cli import history
from hermes_cli.parser import add_command
from hermes_core import human_format
from hermes_core.errors import UsageError
from hermes_core.roles import Role
from hermes_state.store import SessionDB

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes pairing list
  hermes pairing approve telegram K7M2PQ9R
  hermes pairing approve telegram K7M2PQ9R --owner
  hermes pairing revoke telegram 42
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes pairing`."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_command(
        actions, "list", "list approved users and pending requests", EXAMPLES, run=show,
        has_json=True,
    )  # fmt: skip
    approve_parser = add_command(actions, "approve", "approve a user", EXAMPLES, run=approve)
    approve_parser.add_argument("platform", metavar="PLATFORM", help="telegram, matrix, …")
    approve_parser.add_argument("code", metavar="CODE", help="pairing code shown to the user")
    approve_parser.add_argument(
        "--owner", action="store_true", help="this user is you: grant the role owner"
    )
    revoke_parser = add_command(actions, "revoke", "revoke a user's access", EXAMPLES, run=revoke)
    revoke_parser.add_argument("platform", metavar="PLATFORM", help="telegram, matrix, …")
    revoke_parser.add_argument("user", metavar="USER", help="user ID, as shown by `list`")


def show(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """List approved users and pending requests."""
    with history.open_or_create() as db:
        allowed, pending = db.pairings.allowed(), db.pairings.pending()
    if arguments.json:
        users = [user._asdict() for user in allowed]
        out.json({"allowed": users, "asking": [request._asdict() for request in pending]})
        return 0
    for user in allowed:
        since = human_format.date(user.allowed_at)
        out.text(f"{user.platform}  {user.user_id}  {user.user_name}  approved {since}")
    for request in pending:
        ago = human_format.ago(request.created_at, time.time())
        out.text(f"{request.platform}  {request.user_id}  {request.user_name}  requested {ago}")
    if not allowed and not pending:
        out.text("No approved users and no pending requests.")
    return 0


def approve(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Approve a user."""
    platform = arguments.platform.lower()
    known = {entry.name for entry in PlatformRegistry.of_home()}
    if platform not in known:
        names = ", ".join(sorted(known))
        raise UsageError(f"Unknown platform {platform}. Platforms: {names}.")
    with SessionDB() as db:
        role = Role.OWNER if arguments.owner else None
        approved = db.pairings.approve(platform, arguments.code, role)
        is_locked = approved is None and db.pairings.is_locked(platform)
    if is_locked:
        raise UsageError(f"Too many wrong codes for {platform}. Try again in an hour.")
    if approved is None:
        raise UsageError(
            f"Unknown or expired code for {platform} "
            "(codes are single-use and expire after an hour)."
        )
    role_text = f" as {role}" if role else ""
    out.text(f"Approved {approved.user_name or approved.user_id} on {platform}{role_text}.")
    return 0


def revoke(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Revoke the access of a user."""
    with SessionDB() as db:
        had_access = db.pairings.revoke(arguments.platform.lower(), arguments.user)
    if not had_access:
        raise UsageError(f"User {arguments.user} has no access on {arguments.platform}.")
    out.text(f"Revoked the access of {arguments.user}.")
    return 0
