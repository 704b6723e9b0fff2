"""What plugins and tests of hermes-agent import from its module of chats."""

from __future__ import annotations

from gateway.inbound.prompt_format import (
    SessionContext,
    build_session_context,
    build_session_context_prompt,
)
from gateway.routing.sources import SessionEntry, SessionSource, build_session_key, local_now
from hermes_compat.session_store import SessionStore

__all__ = [
    "SessionContext",
    "SessionEntry",
    "SessionSource",
    "SessionStore",
    "build_session_context",
    "build_session_context_prompt",
    "build_session_key",
    "local_now",
]
