"""What an MCP server answers, in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

MOST_CHARACTERS: Final = 60_000


def in_words(result: CallToolResult) -> str:
    """The text of a result; what is no text is described."""
    parts = [_block(one) for one in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = "\n".join(parts)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[… {len(text) - MOST_CHARACTERS:,} characters cut …]"


def _block(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[link to {block.uri}: {block.name}]"
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        kind = block.resource.mime_type or "data"
        return str(text) if text is not None else f"[{kind} at {block.resource.uri}]"
    return f"[{block.type}, {block.mime_type}, {_bytes(block.data):,} bytes]"


def _bytes(data: str) -> int:
    """How many bytes a Base64 text stands for."""
    return len(data) * 3 // 4 - data.count("=", -2)
