"""`hermes permissions`: the mode, the sandbox, and the rules that are always allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_agent.permissions.grants import Grants, check_rule
from hermes_agent.sandbox.runner import find_sandbox
from hermes_cli.parser import add_command, add_json_option
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    import argparse

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
    listing = add_command(
        actions,
        "list",
        "show the mode, the sandbox and the rules",
        examples="examples:\n  hermes permissions list\n  hermes permissions list --json\n",
        run=print_list,
    )
    add_json_option(listing)
    adding = add_command(
        actions,
        "add",
        "allow something without asking",
        examples="examples:\n  hermes permissions add network\n"
        "  hermes permissions add 'run: npm publish'\n",
        run=add,
    )
    removing = add_command(
        actions,
        "remove",
        "remove a rule",
        examples="examples:\n  hermes permissions remove network\n",
        run=remove,
    )
    for child in (adding, removing):
        child.add_argument("rule", metavar="RULE", help="`run: COMMAND` or a permission")


def print_list(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print what applies to new conversations."""
    mode = ConfigFile.of_home().settings().get_str("agent.approvals")
    sandbox, rules = find_sandbox(), _grants().always()
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
    _grants().add([rule])
    out.text(f"Allowed without asking: {rule}")
    return 0


def remove(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Remove a rule."""
    if not _grants().revoke(arguments.rule.strip()):
        raise UsageError(f"No rule {arguments.rule!r}. `hermes permissions list` shows all.")
    out.text(f"Removed: {arguments.rule.strip()}")
    return 0


def _grants() -> Grants:
    return Grants(hermes_home() / "approvals.json")
