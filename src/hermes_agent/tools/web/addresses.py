"""Which addresses may be reached: public ones, and private hosts that the user has named.

A name is resolved once and the connection goes to that address, so that a name cannot lead to
another one between the check and the request.
"""

from __future__ import annotations

import socket
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from hermes_agent.tools.arguments import ToolError
from hermes_core.public_addresses import is_public

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_URL_CHARACTERS: Final = 8_000
SCHEMES: Final = {"http": 80, "https": 443}
PRIVATE_NETWORKS: Final = (
    "{host} is an address of this machine or of a private network. The user can allow it with "
    "`hermes config set web.private_hosts {host}`."
)


class WebAddress(NamedTuple):
    """A URL and the parts that matter for a connection."""

    url: str
    scheme: str
    host: str
    port: int


def parse_url(url: str) -> WebAddress:
    """The parts of a URL; ToolError for what cannot be fetched."""
    url = url.strip()
    if len(url) > MAX_URL_CHARACTERS:
        raise ToolError(f"The URL is longer than {MAX_URL_CHARACTERS:,} characters.")
    if not url.isprintable():
        raise ToolError(f"{url!r} is not a URL.")
    if "://" not in url:
        url = f"https://{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolError(f"{url!r} is not a URL.") from None
    host = (parts.hostname or "").rstrip(".").lower()
    if parts.scheme not in SCHEMES or not host:
        raise ToolError("Only http and https URLs can be fetched.")
    if parts.username or parts.password:
        raise ToolError("A URL with a user name or password is not fetched.")
    try:
        host = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise ToolError(f"{host!r} is not a host name.") from None
    return WebAddress(url, parts.scheme, host, port or SCHEMES[parts.scheme])


def matches_host(host: str, patterns: Sequence[str]) -> bool:
    """Whether a host is one of *patterns*, e.g. docs.python.org or *.example.org."""
    return any(fnmatchcase(host, pattern.lower()) for pattern in patterns)


def resolve(address: WebAddress, private_hosts: Sequence[str]) -> str:
    """The address to connect to; ToolError if it is private and not allowed."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError(f"The host {address.host} is unknown.") from None
    addresses = [str(info[4][0]) for info in found]
    is_allowed = matches_host(address.host, private_hosts)
    if not is_allowed and not all(map(is_public, addresses)):
        raise ToolError(PRIVATE_NETWORKS.format(host=address.host))
    return addresses[0]
