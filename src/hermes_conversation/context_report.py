"""`/context`: what fills the context window of the next request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.context.window import BYTES_PER_TOKEN, message_tokens

if TYPE_CHECKING:
    from hermes_agent.agent import AIAgent

BAR_CELLS: Final = 50
FREE_CELL: Final = "░"
# Headings of the system prompt, and the row that counts what is below them.
PROMPT_SECTIONS: Final = {
    "# Instructions": "project files",
    "# About the user": "memory",
    "# Your memory": "memory",
    "# Skills": "skills",
}
# The name of a row, and its letter in the bar.
ROWS: Final = {
    "system prompt": "S",
    "tools": "T",
    "memory": "M",
    "skills": "K",
    "project files": "P",
    "messages": "█",
}


class ContextRow(NamedTuple):
    """A part of the request, in approximate tokens."""

    name: str
    tokens: int


def context_rows(agent: AIAgent) -> list[ContextRow]:
    """The parts of the next request; tokens are estimated, four bytes for each."""
    parts = agent.context_parts()
    counts = dict.fromkeys(ROWS, 0)
    row = "system prompt"
    for line in parts.system_prompt.splitlines(keepends=True):
        row = next((name for head, name in PROMPT_SECTIONS.items() if line.startswith(head)), row)
        counts[row] += len(line.encode())
    counts = {name: size // BYTES_PER_TOKEN for name, size in counts.items()}
    counts["tools"] = parts.tool_tokens
    counts["messages"] = sum(map(message_tokens, parts.messages))
    return [ContextRow(name, tokens) for name, tokens in counts.items()]


def context_report(agent: AIAgent) -> str:
    """The parts of the next request as a bar and a table."""
    rows, window = context_rows(agent), agent.window
    used = sum(row.tokens for row in rows)
    free = max(0, window - used)
    lines = [_bar(rows, window), f"about {used:,} of {window:,} tokens ({used / window:.0%})", ""]
    for name, tokens in [*rows, ContextRow("free", free)]:
        if tokens or name in {"messages", "free"}:
            mark = ROWS.get(name, FREE_CELL)
            lines.append(f"{mark} {name:<14} {tokens:>9,}  {tokens / window:>6.1%}")
    if agent.context_tokens:
        lines += ["", f"The last request had {agent.context_tokens:,} tokens."]
    return "\n".join(lines)


def _bar(rows: list[ContextRow], window: int) -> str:
    cells = ""
    for row in rows:
        share = round(row.tokens * BAR_CELLS / window)
        cells += ROWS[row.name] * (share or int(row.tokens > 0))
    return cells[:BAR_CELLS].ljust(BAR_CELLS, FREE_CELL)
