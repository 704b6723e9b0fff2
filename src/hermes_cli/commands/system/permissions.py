"""`hermes permissions`: the mode, the sandbox, and the rules that are always allowed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_agent.permissions.grants import GRANTS_FILE, Grants, check_rule
from hermes_agent.sandbox.runner import find_sandbox
from hermes_cli.parser import add_command
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home, state_db_path
from hermes_state.files import shared_files
from hermes_state.store import SessionDB
from hermes_state.store_settings import store_url

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes permissions list
  hermes permissions add 'run: git push origin *'
  hermes permissions remove network
  hermes config set agent.approvals plan      change the mode of new conversations
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add_command(
        actions, "list", "show the mode, the sandbox and the rules", "hermes permissions list",
        "hermes permissions list --json", run=print_list, has_json=True,
    )  # fmt: skip
    adding = add_command(
        actions, "add", "allow something without asking", "hermes permissions add network",
        "hermes permissions add 'run: npm publish'", run=add,
    )  # fmt: skip
    removing = add_command(
        actions, "remove", "remove a rule", "hermes permissions remove network", run=remove
    )
    for child in (adding, removing):
        child.add_argument("rule", metavar="RULE", help="`run: COMMAND` or a permission")


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print what applies to new conversations."""
    mode = ConfigFile.of_home().settings().get_str("agent.approvals")
    sandbox = find_sandbox()
    with _grants() as grants:
        rules = grants.always()
    if arguments.json:
        out.json(
            {"mode": mode, "sandbox": sandbox.name, "problem": sandbox.problem, "rules": rules}
        )
        return 0
    name = sandbox.name if sandbox.is_available else f"none: {sandbox.problem}"
    out.pairs([("mode", mode), ("sandbox", name)])
    out.text()
    if not rules:
        out.hint("No rules. An approval answered with `always` adds one.", "dim")
    for rule in rules:
        out.text(rule)
    return 0


def add(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Store a rule."""
    rule = check_rule(arguments.rule)
    with _grants() as grants:
        grants.add([rule])
    out.text(f"Allowed without asking: {rule}")
    return 0


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Remove a rule."""
    with _grants() as grants:
        is_known = grants.revoke(arguments.rule.strip())
    if not is_known:
        raise UsageError(f"No rule {arguments.rule!r}. `hermes permissions list` shows all.")
    out.text(f"Removed: {arguments.rule.strip()}")
    return 0


@contextmanager
def _grants() -> Iterator[Grants]:
    """The rules of this machine, or of all that share the history."""
    path = hermes_home() / GRANTS_FILE
    if not store_url(state_db_path()):
        yield Grants(path)
        return
    with SessionDB(is_recovering=False) as db:
        yield Grants(path, shared=shared_files(db))
