"""Warnings about names that exist only for plugins of hermes-agent."""

from __future__ import annotations

import functools
import logging

log = logging.getLogger(__name__)


@functools.cache  # once in a process
def warn_deprecated(name: str, instead: str) -> None:
    """Log that a name is deprecated, once."""
    log.warning("%s is deprecated: use %s", name, instead)
