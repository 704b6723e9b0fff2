"""The address of a client, behind trusted reverse proxies the one that they report."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNKNOWN_ADDRESS: Final = "?"


class TrustedProxies:
    """The proxies of the setting `dashboard.trusted_proxies`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._networks = [_network(name) for name in names]

    def client_address(self, scope: Scope) -> str:
        """The client of a request: the last address that is not a trusted proxy.

        A client can write anything before what the proxies add, so entries are read from the end.
        """
        peer = scope["client"][0] if scope.get("client") else UNKNOWN_ADDRESS
        headers = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        chain = ",".join(value.decode("latin-1") for value in headers).split(",")
        hops = [hop.strip() for hop in chain if hop.strip()]
        address = str(peer)
        while hops and self._is_trusted(address):
            address = hops.pop()
        return address[:100]

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def _network(name: str) -> Network:
    try:
        return ipaddress.ip_network(name.strip(), strict=False)
    except ValueError as error:
        raise ConfigError(
            f"dashboard.trusted_proxies: {name!r} is not an address or network."
        ) from error
