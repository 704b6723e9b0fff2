"""Adapters of hermes-agent: their base class, and their connection to the gateway."""
