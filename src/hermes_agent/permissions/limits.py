"""From a verdict to a sandbox: which limits a command runs under.

A mode sets the limits, and what was allowed by name lifts those that it needs: an approved
`git push` gets the network and the keys, an approved write outside the folder gets its files.
"""

from __future__ import annotations

import os
import sys
from enum import Flag, auto
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.sandbox import landlock
from hermes_agent.sandbox.denials import DeniedAccess
from hermes_agent.sandbox.policy import (
    SandboxPolicy,
    credential_paths,
    git_folders,
    start_up_paths,
)
from hermes_core.paths import installation_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_agent.permissions.verdicts import RiskFinding
    from hermes_agent.sandbox.denials import Denial

READABLE_HERMES_FOLDERS = ("skills",)  # what an agent needs of HERMES_HOME


class Limit(Flag):
    """What a sandbox keeps from a command."""

    NONE = 0
    FILES = auto()  # writing outside the working folder
    NETWORK = auto()
    SOCKETS = auto()  # Unix sockets: ssh-agent, docker.sock, D-Bus
    CREDENTIALS = auto()  # reading ~/.ssh and other credential folders
    PRIVILEGES = auto()  # sudo, other processes, the whole system: needs no sandbox at all


REMOTE_LIMITS = Limit.NETWORK | Limit.SOCKETS | Limit.CREDENTIALS
LIFTED_LIMITS = {
    **dict.fromkeys(
        ("write-outside", "home-dotfile", "git-internals", "global-packages"), Limit.FILES
    ),
    **dict.fromkeys(("network", "network-shell", "download-to-shell"), Limit.NETWORK),
    "local-socket": Limit.SOCKETS,
    **dict.fromkeys(
        ("ssh", "git-push", "git-push-force", "forge", "cloud", "publish", "kubectl-delete"),
        REMOTE_LIMITS,
    ),
    **dict.fromkeys(("containers", "docker-remove", "docker-host"), REMOTE_LIMITS | Limit.FILES),
    **dict.fromkeys(
        (
            "sudo", "system-packages", "systemctl", "crontab", "firewall", "system-settings",
            "system-users", "kill",
        ),
        Limit.PRIVILEGES,
    ),
}  # fmt: skip


class CommandPlace(NamedTuple):
    """Where a command runs: its working folder and the folders of Hermes."""

    workspace: Path
    hermes_home: Path
    home: Path
    temporary: Path
    writable: tuple[Path, ...] = ()  # granted besides the working folder


def build_policy(
    mode: str, findings: Iterable[RiskFinding], place: CommandPlace, granted: Limit = Limit.NONE
) -> SandboxPolicy | None:
    """The limits of an allowed command; None for one that was allowed to have none."""
    lifted = granted
    keys = {finding.key for finding in findings}
    for key in keys:
        lifted |= LIFTED_LIMITS.get(key, Limit.NONE)
    if Limit.PRIVILEGES in lifted:
        return None
    is_full, is_plan = mode == "full", mode == "plan"
    writable = () if is_plan else _writable(place)
    return SandboxPolicy(
        writable=writable,
        hidden=_hidden(place, lifted),
        protected=tuple(_protected(place, keys)),
        reopened=_reopened(place, writable, keys),
        revealed=_revealed(place),
        installation=(*installation_paths(), *(() if is_full else (Path(sys.prefix),))),
        visible=(place.workspace,),
        temporary=place.temporary,
        has_network=not is_plan and (is_full or Limit.NETWORK in lifted),
        has_allowed_hosts=not is_plan,
        has_local_sockets=is_full or Limit.SOCKETS in lifted,
        is_limited=is_plan or not (is_full or Limit.FILES in lifted),
        protects_git="git-internals" not in keys,
    )


def lift(policy: SandboxPolicy, denial: Denial) -> SandboxPolicy:
    """The policy without the limit that a command ran into; of a write only in its folder."""
    if denial.access is DeniedAccess.NETWORK:
        return policy._replace(has_network=True)
    if denial.access is DeniedAccess.SOCKET:
        return policy._replace(has_local_sockets=True)
    folder = Path(denial.folder or "/")
    protected = tuple(path for path in policy.protected if os.path.realpath(path) != str(folder))
    if protected != policy.protected:  # the home folder
        return policy._replace(protected=protected, reopened=())
    if folder == Path(folder.anchor):
        return policy._replace(is_limited=False)
    return policy._replace(writable=(*policy.writable, folder))


def _writable(place: CommandPlace) -> tuple[Path, ...]:
    """The working folder and its git directory; the root of all files is not a workspace."""
    if place.workspace == Path(place.workspace.anchor):
        return place.writable
    # A git directory inside is writable with its folder. To name it, too, would open another
    # folder if a command puts a link in its place before the sandbox is made.
    folders = (place.workspace, *git_folders(place.workspace), *place.writable)
    return tuple(
        folder
        for folder in dict.fromkeys(folders)
        if not any(folder != other and folder.is_relative_to(other) for other in folders)
    )


def _hidden(place: CommandPlace, lifted: Limit) -> tuple[Path, ...]:
    if Limit.CREDENTIALS in lifted:
        return (place.hermes_home,)
    return (place.hermes_home, *credential_paths(place.home))


def _protected(place: CommandPlace, allowed: set[str]) -> Iterator[Path]:
    """What the user's own programs run later; only a command that names it may change it.

    A startup file that does not exist cannot be protected in a writable folder. So where the
    home folder is part of the workspace, new entries in it need approval.
    """
    if "home-dotfile" not in allowed:
        if place.home.is_relative_to(place.workspace):
            yield place.home
        yield from start_up_paths(place.home)
    if "git-internals" not in allowed:
        yield from (folder / "hooks" for folder in git_folders(place.workspace))


def _reopened(
    place: CommandPlace, writable: tuple[Path, ...], allowed: set[str]
) -> tuple[Path, ...]:
    """What stays writable in a home folder that is protected as a whole."""
    is_protected = place.home.is_relative_to(place.workspace) and "home-dotfile" not in allowed
    if not is_protected or place.workspace not in writable:
        return ()
    entries = landlock.paths_around(start_up_paths(place.home), place.home)
    return tuple(entry for entry in entries if not entry.is_symlink())


def program_folders(command: Iterable[str]) -> tuple[Path, ...]:
    """The folders of a program and of the files that it is started with."""
    files = [path for word in command if (path := Path(word)).is_absolute() and path.is_file()]
    programs = [path.parent.parent for path in files if path.parent.name == "bin"]
    return tuple(dict.fromkeys([*programs, *(path.parent for path in files)]))


def _revealed(place: CommandPlace) -> tuple[Path, ...]:
    folders = [place.hermes_home / name for name in READABLE_HERMES_FOLDERS]
    if place.workspace.is_relative_to(place.hermes_home):
        folders.append(place.workspace)
    return tuple(folders)
