"""Delivery state: inbox, outbox, leases, boundary events, routes, pairings."""
