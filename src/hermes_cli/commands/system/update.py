"""`hermes update`: install the newest version."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from hermes_cli.commands.gateway import setup
from hermes_cli.parser import add_json_option
from hermes_core import __version__
from hermes_core.distribution import find_distribution
from hermes_core.errors import HermesError, UsageError
from hermes_core.human_format import plural
from hermes_core.system_programs import system_program

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from hermes_cli.output import CommandOutput
    from hermes_core.distribution import Distribution

EXAMPLES = """\
examples:
  hermes update --check     list what is new
  hermes update

A checkout is updated with git (fast-forward only). For a package, the command that installs a newer
one is printed.
The history is not touched. Running gateways and daemons keep their version until they restart.
"""
MAX_SHOWN: Final = 10
GIT_SECONDS: Final = 120
GIT_VARIABLES: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"})
RESTART: Final = (
    "Running processes keep the old version until you run `hermes gateway restart` and "
    "`hermes serve --stop` (the daemon starts again automatically)."
)
# How a newer package replaces one, by the program that installed it.
REPLACEMENTS: Final = {
    "uv": "uv tool install --force FILE.whl",
    "pipx": "pipx install --force FILE.whl",
}


class UpdateError(HermesError):
    """The program could not be updated; the text names the remedy."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--check", action="store_true", help="list what is new, change nothing")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Update the program."""
    distribution = find_distribution()
    if distribution.is_checkout:
        return _update_checkout(distribution.folder, arguments, out)
    raise UsageError(_advise(distribution))


def _update_checkout(folder: Path, arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Fast-forward the branch of a checkout to its upstream."""
    if not (folder / ".git").exists():
        raise UpdateError(f"{folder} is not a git checkout. Unpack the new release over it.")
    branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    if not _succeeds(folder, "rev-parse", "@{upstream}"):
        advice = "Set one: git branch --set-upstream-to=origin/main"
        raise UpdateError(f"The branch {branch} of {folder} has no upstream branch. {advice}")
    upstream = _git(folder, "rev-parse", "--abbrev-ref", "@{upstream}")
    out.progress("Fetching new commits…")
    _git(folder, "fetch", "--quiet")
    out.progress("")
    subjects = _git(folder, "log", "--format=%s", f"HEAD..{upstream}").splitlines()
    if not arguments.check and subjects:
        _fast_forward(folder, upstream)
    if not arguments.check and setup.is_outdated():
        out.note(f"Rewrote {setup.write_service().path}: it names a module that has moved.")
    if arguments.json:
        state = {"version": __version__, "kind": "checkout", "branch": branch, "new": subjects}
        out.json({**state, "updated": bool(subjects) and not arguments.check})
    else:
        _print_changes(subjects, out, is_done=not arguments.check)
    return 0


def _fast_forward(folder: Path, upstream: str) -> None:
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if changed:
        raise UpdateError(f"{folder} has uncommitted changes. Commit or stash them first.")
    if not _succeeds(folder, "merge-base", "--is-ancestor", "HEAD", upstream):
        raise UpdateError(f"Your branch has commits that {upstream} does not have. Rebase it.")
    _git(folder, "merge", "--quiet", "--ff-only", upstream)


def _print_changes(subjects: list[str], out: CommandOutput, *, is_done: bool) -> None:
    if not subjects:
        out.text(f"Hermes {__version__} is up to date.")
        return
    for subject in subjects[:MAX_SHOWN]:
        out.text(f"  {subject}")
    if len(subjects) > MAX_SHOWN:
        out.text(f"  … and {len(subjects) - MAX_SHOWN} more", "dim")
    count = plural(len(subjects), "new commit")
    if is_done:
        out.hint(f"Updated: {count}. The next start installs changed dependencies. {RESTART}")
    else:
        out.hint(f"{count}. To install: `hermes update`")


def _advise(distribution: Distribution) -> str:
    """How to replace a package; it is not on a package index, where another could have its name."""
    python = distribution.folder / "bin" / "python"
    command = REPLACEMENTS.get(distribution.kind, f"{python} -m pip install FILE.whl")
    return (
        f"This copy was installed as a package ({distribution.kind}). Build the new one in an "
        f"updated checkout (`uv build --wheel`), then run: {command}"
    )


def _git(folder: Path, *arguments: str) -> str:
    """The output of git in *folder*."""
    done = _run_git(folder, *arguments)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UpdateError(f"git {arguments[0]} failed: {lines[-1] if lines else 'no message'}")
    return done.stdout.strip()


def _succeeds(folder: Path, *arguments: str) -> bool:
    return _run_git(folder, *arguments).returncode == 0


def _run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    git = system_program("git")
    if git is None:
        raise UpdateError("git is required to update a checkout. Install it, e.g. apt install git")
    # Variables of a git hook that runs Hermes would select another repository.
    variables = {key: value for key, value in os.environ.items() if key not in GIT_VARIABLES}
    try:
        return subprocess.run(
            [git, "-C", str(folder), *arguments], check=False, capture_output=True, text=True,
            timeout=GIT_SECONDS, env={**variables, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise UpdateError(f"git {arguments[0]} took too long. Check your network.") from error
