"""What a model is told about a chat, under the names that plugins of hermes-agent use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.inbound.prompt_format import describe_chat

if TYPE_CHECKING:
    from datetime import datetime

    from gateway.config import GatewayConfig
    from gateway.routing.entries import SessionEntry
    from gateway.routing.sources import SessionSource


@dataclass
class SessionContext:
    """A chat and its conversation."""

    source: SessionSource
    connected_platforms: list[str] = field(default_factory=list)
    session_key: str = ""
    session_id: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


def build_session_context(
    source: SessionSource, config: GatewayConfig, session_entry: SessionEntry | None = None
) -> SessionContext:
    """The context of a chat."""
    enabled = [platform.value for platform, item in config.platforms.items() if item.enabled]
    if session_entry is None:
        return SessionContext(source, enabled)
    return SessionContext(
        source,
        enabled,
        session_entry.session_key,
        session_entry.session_id,
        session_entry.created_at,
        session_entry.updated_at,
    )


def build_session_context_prompt(context: SessionContext, *, is_shared: bool = False) -> str:
    """The description of a chat for the system prompt."""
    return describe_chat(context.source, is_shared=is_shared)
