"""Recognises in the output of a failed command what the sandbox kept from it."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.sandbox.policy import SandboxPolicy

TAIL_CHARACTERS: Final = 4_000
PATH: Final = r"['\"]?([^\s'\"\u2018\u2019\u201c\u201d:;,]*/[^\s'\"\u2018\u2019\u201c\u201d:;,]*)"
READ_ONLY: Final = re.compile(
    rf"{PATH}.{{0,40}}(?:Read-only file system|EROFS|Device or resource busy|EBUSY)"
    rf"|(?:Read-only file system|EROFS).{{0,60}}?{PATH}",
    re.IGNORECASE,
)
NO_PERMISSION: Final = re.compile(
    rf"{PATH}.{{0,40}}(?:Permission denied|EACCES)|(?:Permission denied|EACCES).{{0,60}}?{PATH}",
    re.IGNORECASE,
)
WRITE_DENIED: Final = re.compile(
    r"Read-only file system|EROFS|resource busy|EBUSY|Permission denied|EACCES"
    r"|Operation not permitted",
    re.IGNORECASE,
)
NETWORK_DENIED: Final = re.compile(
    r"Could not resolve host|Temporary failure in name resolution|Name or service not known"
    r"|Network is unreachable|ENETUNREACH|EAI_AGAIN|getaddrinfo"
    r"|Failed to establish a new connection|Couldn't connect to server|dns error"
    r"|No route to host|Unable to look up|CONNECT tunnel failed, response 403"
    r"|Tunnel connection failed: 403|agent\.allowed_hosts",
    re.IGNORECASE,
)
SOCKET_DENIED: Final = re.compile(
    r"(?:socket|agent|daemon|D-?Bus|docker|/run/|\.sock).{0,120}(?:Permission denied|EACCES)"
    r"|(?:Permission denied|EACCES).{0,120}(?:socket|\.sock)|Cannot connect to the Docker daemon",
    re.IGNORECASE,
)


class DeniedAccess(Enum):
    """The limit that a command ran into."""

    NETWORK = "network"
    SOCKET = "local-socket"
    WRITE = "write-outside"


class Denial(NamedTuple):
    """What a command wanted and the sandbox did not allow.

    The folder is what an approval makes writable, so that it covers what it names; without one
    it lifts the limit for all files.
    """

    access: DeniedAccess
    path: str = ""
    folder: str = ""  # a real path

    @property
    def reason(self) -> str:
        """A clause for an approval: what the command wants."""
        if self.access is DeniedAccess.NETWORK:
            return "uses the network"
        if self.access is DeniedAccess.SOCKET:
            return "connects to a service of this machine (Unix socket)"
        place = f"{self.path} (allows {self.folder})" if self.folder else "anywhere"
        return f"writes outside the working folder: {place}"


def find_denial(output: str, policy: SandboxPolicy, cwd: Path) -> Denial | None:
    """What the sandbox denied, by the end of the output; None when it was something else."""
    tail = output[-TAIL_CHARACTERS:]
    if not policy.has_local_sockets and SOCKET_DENIED.search(tail):
        return Denial(DeniedAccess.SOCKET)
    if not policy.has_network and NETWORK_DENIED.search(tail):
        return Denial(DeniedAccess.NETWORK)
    if policy.is_limited and WRITE_DENIED.search(tail):
        return _denied_write(tail, policy, cwd)
    return None


def _denied_write(tail: str, policy: SandboxPolicy, cwd: Path) -> Denial | None:
    """A write that the sandbox refused.

    bubblewrap shows a read-only file system, Landlock a missing permission. The latter may also
    be the file's own mode: then Hermes could not write it either. What is protected or hidden
    is not offered: no approval of a folder opens it.
    """
    named = [_resolve(found[1] or found[2], cwd) for found in READ_ONLY.finditer(tail)]
    if not named:
        refused = (_resolve(found[1] or found[2], cwd) for found in NO_PERMISSION.finditer(tail))
        named = [path for path in refused if _is_sandboxed(path, policy)]
    if not named:
        return Denial(DeniedAccess.WRITE) if "ead-only file system" in tail else None
    path, folder = named[0], named[0].parent
    is_home = folder in map(Path, map(os.path.realpath, policy.protected))
    if _is_below(path, policy.installation):
        return None
    if _is_below(path, (*policy.hidden, *policy.protected)) and not is_home:
        return None
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if _is_below(folder, (*policy.writable, policy.temporary)) and not is_home:
        return Denial(DeniedAccess.WRITE)  # the command was in another folder
    return Denial(DeniedAccess.WRITE, str(path), str(folder))


def _resolve(text: str, cwd: Path) -> Path:
    """A path of an error message, its folder without symbolic links."""
    try:
        path = Path(os.path.normpath(cwd / Path(text).expanduser()))
    except RuntimeError:  # an unknown user
        path = cwd / text
    return Path(os.path.realpath(path.parent), path.name)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _is_sandboxed(path: Path, policy: SandboxPolicy) -> bool:
    """Whether a path is outside of the writable folders, and writable without a sandbox."""
    if _is_below(path, (*policy.writable, *policy.hidden, policy.temporary)):
        return False
    while not path.exists() and path != path.parent:
        path = path.parent
    return os.access(path, os.W_OK)
