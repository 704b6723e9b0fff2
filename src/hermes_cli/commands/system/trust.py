"""`hermes trust`: which files of a project may run commands and instruct the agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_agent.project.files import read_project
from hermes_agent.project.summary import TRUST_WARNING, describe_file, describe_pending
from hermes_agent.project.trust import TrustStore
from hermes_cli.output import confirm
from hermes_cli.parser import add_json_option
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from hermes_agent.project.trust import PendingFile, ProjectTrust
    from hermes_cli.output import CommandOutput
    from hermes_core.json_values import JsonData

EXAMPLES: Final = """\
examples:
  hermes trust                   show what this project would run, and ask
  hermes trust ~/src/site --show show it without asking
  hermes trust --revoke          ignore the files of this project again
  hermes trust --list            list trusted projects
  hermes trust --yes --json      trust without asking, in your own scripts
"""
QUESTION: Final = "Trust these files?"


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of `hermes trust`."""
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", help="folder of the project (default: this one)"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--show", action="store_true", help="show the files without asking")
    action.add_argument("--revoke", action="store_true", help="no longer trust the project")
    action.add_argument("--list", action="store_true", help="list trusted projects")
    action.add_argument("--yes", action="store_true", help="trust without asking")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Show, trust or revoke."""
    store = TrustStore()
    if arguments.list:
        return _print_list(store, out, as_json=arguments.json)
    folder = Path(arguments.folder or ".").expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.")
    trust = store.assess(read_project(folder))
    if arguments.revoke:
        return _revoke(store, trust, out, as_json=arguments.json)
    if arguments.json:
        if arguments.yes:
            store.trust(trust.project)
            trust = store.assess(trust.project)
        elif not arguments.show:
            raise UsageError("--json asks nothing; add --show or --yes.")
        out.json(_document(trust))
        return 0
    if arguments.show:
        _print_pending(trust, out) if trust.pending else _print_trusted(trust, out)
        return 0
    return review(folder, out, is_confirmed=arguments.yes)


def review(folder: Path, out: CommandOutput, *, is_confirmed: bool = False) -> int:
    """Show what is not trusted and ask; the exit code."""
    store = TrustStore()
    trust = store.assess(read_project(folder))
    if not trust.pending:
        _print_trusted(trust, out)
        return 0
    _print_pending(trust, out)
    out.flush()
    if not confirm(QUESTION, out, is_confirmed=is_confirmed):
        store.decline(trust)
        out.text("Not trusted; the files are not used.")
        return 1
    store.trust(trust.project)
    out.hint(f"Trusted: {trust.project.root}. To undo it, run `hermes trust --revoke`.")
    return 0


def ask_at_start(cwd: Path, out: CommandOutput) -> None:
    """Ask once about new and changed files; only for a user at a terminal of their own."""
    store = TrustStore()
    trust = store.assess(read_project(cwd))
    if not trust.must_ask:
        return
    _print_pending(trust, out)
    out.flush()
    if confirm(QUESTION, out, is_confirmed=False):
        store.trust(trust.project)
    else:
        store.decline(trust)
        out.hint("Not trusted; to change this, run `hermes trust`.")


def _revoke(store: TrustStore, trust: ProjectTrust, out: CommandOutput, *, as_json: bool) -> int:
    is_known = store.revoke(trust.project.root)
    if as_json:
        out.json({"folder": str(trust.project.root), "revoked": is_known})
    else:
        text = "No longer trusted" if is_known else "Was not trusted"
        out.text(f"{text}: {trust.project.root}")
    return 0 if is_known else 1


def _print_list(store: TrustStore, out: CommandOutput, *, as_json: bool) -> int:
    folders = store.folders()
    if as_json:
        out.json(
            [
                {"folder": str(item.root), "files": item.files, "trusted_at": item.trusted_at}
                for item in folders
            ]
        )
        return 0
    for item in folders:
        exists = "" if os.path.isdir(item.root) else ", missing"  # noqa: PTH112 - a plain test
        count = human_format.plural(len(item.files), "file")
        out.text(f"{item.root}  ({count}{exists})")
    if not folders:
        out.hint("No trusted projects. Run `hermes trust` in one.", "dim")
    return 0


def _print_pending(trust: ProjectTrust, out: CommandOutput) -> None:
    out.text(f"Files of {trust.project.root} that are not trusted:", "bold")
    for line in describe_pending(trust.pending):
        out.text(f"  {line}")
    for problem in trust.project.problems:
        out.text(f"  never used: {problem}", "yellow")
    out.text(TRUST_WARNING, "yellow")


def _print_trusted(trust: ProjectTrust, out: CommandOutput) -> None:
    if not trust.trusted:
        out.text(f"{trust.project.root} has no files that need trust.")
    for file in trust.trusted:
        lines = describe_file(file)
        out.text(f"{file.name} (trusted)")
        for line in lines:
            out.text(f"    {line}")
    for problem in trust.project.problems:
        out.text(f"never used: {problem}", "yellow")


def _document(trust: ProjectTrust) -> JsonData:
    return {
        "folder": str(trust.project.root),
        "trusted": [file.name for file in trust.trusted],
        "pending": [_pending(item) for item in trust.pending],
        "problems": list(trust.project.problems),
    }


def _pending(item: PendingFile) -> JsonData:
    return {
        "file": item.file.name,
        "state": item.state,
        "digest": item.file.digest,
        "adds": describe_file(item.file),
    }
