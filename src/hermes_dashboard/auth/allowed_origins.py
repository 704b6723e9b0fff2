"""Under which names the dashboard is reached, and from which pages: a fixed list.

A page of the web that points its own name at this machine sends that name; it is not in the
list, so nothing here answers it.
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
ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - to recognise, not to bind to
USUAL_PORTS: Final = {"http": 80, "https": 443}


class AllowedOrigins(NamedTuple):
    """The hosts and origins that are answered, and how one gets in."""

    hosts: frozenset[str]
    origins: frozenset[str]
    login: Login
    is_secure: bool
    port: int
    url: str

    @property
    def cookie(self) -> str:
        """The cookie's name; browsers share cookies between ports, so the port is in it."""
        return f"hermes_dashboard_{self.port}"

    def is_secure_for(self, host: str) -> bool:
        """Whether a browser that asked for *host* came over TLS, be it a proxy's."""
        return self.is_secure or f"https://{host}" in self.origins


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on *host*."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def doors(
    host: str, port: int, names: Iterable[str] = (), *, is_secure: bool = False
) -> AllowedOrigins:
    """The doors of a server that listens on *host* and *port*, with further *names*."""
    scheme = "https" if is_secure else "http"
    own = [*LOOPBACK, *([] if host in ANY else [host])]
    origins = {_origin(scheme, _bracketed(name), port) for name in own}
    origins |= {_named(name, scheme, port) for name in names}
    expanded = {one for origin in origins for one in _forms(origin)}
    shown = "127.0.0.1" if is_loopback(host) and host != "::1" else _shown(host)
    return AllowedOrigins(
        frozenset(urlsplit(one).netloc for one in expanded),
        frozenset(expanded),
        "link" if is_loopback(host) else "password",
        is_secure,
        port,
        _origin(scheme, shown, port),
    )


def _shown(host: str) -> str:
    return "localhost" if host in ANY else _bracketed(host)


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def _origin(scheme: str, name: str, port: int) -> str:
    return f"{scheme}://{name}:{port}".lower()


def _named(written: str, scheme: str, port: int) -> str:
    """The origin that an entry of the settings means: a name, with a port, or a whole origin."""
    text = written.strip().lower()
    parts = urlsplit(text if "://" in text else f"{scheme}://{text}")
    try:
        chosen = parts.port
    except ValueError:
        chosen = -1
    is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if parts.scheme not in USUAL_PORTS or not parts.hostname or not is_bare or chosen == -1:
        raise ConfigError(
            f"dashboard.hosts: {written!r} is not a host; write NAME, NAME:PORT or https://NAME."
        )
    if chosen is None:
        chosen = USUAL_PORTS[parts.scheme] if "://" in text else port
    return _origin(parts.scheme, _bracketed(parts.hostname), chosen)


def _forms(origin: str) -> list[str]:
    """An origin as browsers write it: the usual port is left out."""
    parts = urlsplit(origin)
    bare = origin.removesuffix(f":{USUAL_PORTS[parts.scheme]}")
    return [origin] if bare == origin else [origin, bare]
