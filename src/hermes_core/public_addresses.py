"""Public addresses of the network, as opposed to those of this machine and of private networks."""

from __future__ import annotations

import ipaddress
from typing import Final

# Addresses that end with an IPv4 address: of a translator, and the oldest notation.
EMBEDDING_NETWORKS: Final = (
    ipaddress.IPv6Network("64:ff9b::/96"),
    ipaddress.IPv6Network("::/96"),
)


def is_public(address: str) -> bool:
    """Whether an address is in the public network, also by an IPv4 address inside of it."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local:
            return False
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and any(found in network for network in EMBEDDING_NETWORKS):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast
