"""`hermes completion`: shell completion scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from hermes_cli.output import CommandOutput

EXAMPLES = """\
examples:
  hermes completion bash >> ~/.bashrc
  hermes completion zsh >> ~/.zshrc
  hermes completion fish > ~/.config/fish/completions/hermes.fish

Commands, options and session IDs are completed.
"""
MAX_IDS = 50


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="shell to complete for")
    parser.set_defaults(run=print_script)


def print_script(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Print the lines for the startup file of the shell."""
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - this command only

    out.text(shellcode(["hermes"], shell=arguments.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Print completions for the shell; ends the process."""
    import argcomplete  # noqa: PLC0415 - when the shell asks only

    for action in _actions(parser):
        if action.metavar == "ID":
            action.completer = session_ids
    argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> list[Any]:
    import argparse  # noqa: PLC0415 - loaded already where this is called

    results: list[Any] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to walk
        results.append(action)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for child in action.choices.values():
                results += _actions(child)
    return results


def session_ids(prefix: str, **_: object) -> dict[str, str]:
    """Session IDs with a prefix, and their descriptions."""
    from hermes_cli import history  # noqa: PLC0415 - where an id is completed only

    if not history.exists():
        return {}
    with history.open_for_reading() as db:
        rows = db.lists.sessions(limit=MAX_IDS, order_by_last_active=True, id_query=prefix or None)
        return {
            row.id: history.display_name(row.session.title, row.preview)
            for row in rows
            if row.id.startswith(prefix)
        }
