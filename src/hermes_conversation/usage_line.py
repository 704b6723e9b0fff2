"""The usage of one conversation for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_conversation.conversation import Conversation


def usage_line(conversation: Conversation) -> str:
    """Tokens, cost and context of a conversation, in one line."""
    row = conversation.row()
    if row is None:
        return "No tokens used yet."
    tokens = {
        "input tokens": row.input_tokens,
        "output tokens": row.output_tokens,
        "cache read tokens": row.cache_read_tokens,
        "reasoning tokens": row.reasoning_tokens,
    }
    parts = [f"{number:,} {name}" for name, number in tokens.items() if number]
    if not parts:
        return "No tokens used yet."
    cost = row.actual_cost_usd or row.estimated_cost_usd
    if cost:
        parts.append(f"about ${cost:.4f}")
    used, window = conversation.agent.context_tokens, conversation.agent.window
    if used:
        parts.append(f"{used / window:.0%} of the {window:,} token context window")
    return ", ".join(parts)
