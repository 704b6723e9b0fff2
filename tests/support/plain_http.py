"""For clients of servers on loopback without TLS."""

from __future__ import annotations

import ssl

# Loading the certificates of the system costs 40 ms for every client.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
