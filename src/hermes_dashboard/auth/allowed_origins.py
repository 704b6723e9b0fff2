"""The fixed list of hosts and origins that the dashboard accepts.

It defends against DNS rebinding: a website that points its own name at this machine sends
that name as Host, which is not in the list, and is refused.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

Login = Literal["link", "password"]

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
WILDCARD_HOSTS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - to recognise, not to bind to
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class AllowedOrigins(NamedTuple):
    """The accepted hosts and origins, and the sign-in method."""

    hosts: frozenset[str]
    origins: frozenset[str]
    login: Login
    is_secure: bool
    port: int
    url: str

    @property
    def cookie(self) -> str:
        """The cookie's name; it includes the port, because browsers share cookies between ports."""
        return f"hermes_dashboard_{self.port}"

    def is_secure_for(self, host: str) -> bool:
        """Whether a browser reached *host* over TLS, possibly that of a proxy."""
        return self.is_secure or f"https://{host}" in self.origins


def is_loopback(host: str) -> bool:
    """Whether *host* is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_origins(
    host: str, port: int, names: Iterable[str] = (), *, is_secure: bool = False
) -> AllowedOrigins:
    """The allowed origins of a server on *host* and *port*, with additional *names*."""
    scheme = "https" if is_secure else "http"
    own_hosts = [*LOOPBACK, *([] if host in WILDCARD_HOSTS else [host])]
    origins = {_origin(scheme, _bracketed(name), port) for name in own_hosts}
    origins |= {_parse_entry(name, scheme, port) for name in names}
    expanded = {form for origin in origins for form in _forms(origin)}
    display_host = "127.0.0.1" if is_loopback(host) and host != "::1" else _display_host(host)
    return AllowedOrigins(
        frozenset(urlsplit(form).netloc for form in expanded),
        frozenset(expanded),
        "link" if is_loopback(host) else "password",
        is_secure,
        port,
        _origin(scheme, display_host, port),
    )


def _display_host(host: str) -> str:
    return "localhost" if host in WILDCARD_HOSTS else _bracketed(host)


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def _origin(scheme: str, name: str, port: int) -> str:
    return f"{scheme}://{name}:{port}".lower()


def _parse_entry(entry: str, scheme: str, port: int) -> str:
    """The origin of a `dashboard.hosts` entry: a name, a name with port, or an origin."""
    text = entry.strip().lower()
    parts = urlsplit(text if "://" in text else f"{scheme}://{text}")
    try:
        entry_port = parts.port
    except ValueError:
        entry_port = -1
    is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or not is_bare or entry_port == -1:
        raise ConfigError(
            f"dashboard.hosts: {entry!r} is not a host; write NAME, NAME:PORT or https://NAME."
        )
    if entry_port is None:
        entry_port = DEFAULT_PORTS[parts.scheme] if "://" in text else port
    return _origin(parts.scheme, _bracketed(parts.hostname), entry_port)


def _forms(origin: str) -> list[str]:
    """The origin with and without its default port, which browsers omit."""
    parts = urlsplit(origin)
    bare = origin.removesuffix(f":{DEFAULT_PORTS[parts.scheme]}")
    return [origin] if bare == origin else [origin, bare]
