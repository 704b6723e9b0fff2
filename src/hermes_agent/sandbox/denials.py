"""Recognises in the output of a failed command what the sandbox kept from it."""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from hermes_agent.sandbox.policy import SandboxPolicy

TAIL_CHARACTERS: Final = 4_000
PATH: Final = r"['\"]?((?:/|~/)[^\s'\":;,]+)"
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
    """What a command wanted and the sandbox did not allow."""

    access: DeniedAccess
    path: str = ""

    @property
    def reason(self) -> str:
        """A clause for an approval: what the command wants."""
        if self.access is DeniedAccess.NETWORK:
            return "uses the network"
        if self.access is DeniedAccess.SOCKET:
            return "connects to a service of this machine (Unix socket)"
        return f"writes outside the working folder{f': {self.path}' if self.path else ''}"


def find_denial(output: str, policy: SandboxPolicy) -> Denial | None:
    """What the sandbox denied, judged by the end of the output; None when it was something else."""
    tail = output[-TAIL_CHARACTERS:]
    if not policy.has_local_sockets and SOCKET_DENIED.search(tail):
        return Denial(DeniedAccess.SOCKET)
    if not policy.has_network and NETWORK_DENIED.search(tail):
        return Denial(DeniedAccess.NETWORK)
    if policy.is_limited and WRITE_DENIED.search(tail):
        return _denied_write(tail, policy)
    return None


def _denied_write(tail: str, policy: SandboxPolicy) -> Denial | None:
    """A write that the sandbox refused.

    bubblewrap shows a read-only file system, Landlock a missing permission. The latter may also
    be the file's own mode: then Hermes could not write it either.
    """
    match = READ_ONLY.search(tail)
    if match is None:
        refused = (found[1] or found[2] or "" for found in NO_PERMISSION.finditer(tail))
        path = next((path for path in refused if path and _is_sandboxed(path, policy)), "")
        if path:
            return Denial(DeniedAccess.WRITE, path)
    if match is not None:
        return Denial(DeniedAccess.WRITE, match[1] or match[2] or "")
    return Denial(DeniedAccess.WRITE) if "ead-only file system" in tail else None


def _is_sandboxed(text: str, policy: SandboxPolicy) -> bool:
    """Whether a path is outside of the writable folders, and writable without a sandbox."""
    path = Path(text).expanduser()
    known = (*policy.writable, *policy.hidden, policy.temporary)
    if any(path.is_relative_to(folder) for folder in known):
        return False
    while not path.exists() and path != path.parent:
        path = path.parent
    return os.access(path, os.W_OK)
