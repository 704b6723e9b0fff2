"""What tests of hermes-agent import from its gateway; ours is `gateway.process.runner`."""

from __future__ import annotations

import asyncio

from hermes_compat.gateway_runner import GatewayRunner

__all__ = ["GatewayRunner", "asyncio"]
