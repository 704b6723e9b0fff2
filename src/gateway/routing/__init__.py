"""Which conversation a place has: session keys, entries, expiry, hand-offs."""
