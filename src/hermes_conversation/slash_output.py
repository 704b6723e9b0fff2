"""What `/context`, `/copy`, `/model list` and `/usage` show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.context.window import BYTES_PER_TOKEN, message_tokens
from hermes_conversation.attachments import text_of
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.human_format import plural

if TYPE_CHECKING:
    from hermes_agent.agent import AIAgent
    from hermes_agent.providers.catalog import CatalogModel
    from hermes_conversation.conversation import Conversation

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
MAX_LISTED_MODELS: Final = 40
CODE_BLOCK: Final = re.compile(
    r"^ {0,3}(```+|~~~+)[^\n]*\n(.*?)^ {0,3}\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL
)


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
    hints, hint_tokens = conversation.agent.hint_tokens()
    if hints:
        parts.append(f"{plural(hints, 'hint')} with {hint_tokens:,} tokens")
    return ", ".join(parts)


def list_models(words: str) -> str:
    """The models that contain all *words*, with context window and price."""
    from hermes_agent.providers import catalog  # noqa: PLC0415 - needs HTTP, for this only

    lists = catalog.ModelCatalog().load(catalog.known_endpoints(ConfigFile.of_home().settings()))
    found = catalog.search(catalog.all_models(lists), words)
    lines = [_model_line(model) for model in found[:MAX_LISTED_MODELS]]
    if len(found) > MAX_LISTED_MODELS:
        lines.append(f"… and {len(found) - MAX_LISTED_MODELS} more; /model list WORDS searches")
    lines += [each.problem for each in lists if each.problem]
    return "\n".join(lines) or "No matching models."


def _model_line(model: CatalogModel) -> str:
    facts = []
    if model.window:
        facts.append(f"{round(model.window / 1000):,}k tokens")
    if model.input_price is not None and model.output_price is not None:
        facts.append(f"${model.input_price:g} / ${model.output_price:g} per million")
    return f"{model.name}  {', '.join(facts)}".strip()


def text_to_copy(conversation: Conversation, words: str) -> str:
    """The text of the last answer; with a number, that code block of it."""
    answer = _last_answer(conversation)
    if not words:
        return answer
    if not words.isdigit():
        raise UsageError("Usage: /copy, or /copy 2 for the second code block of the last answer")
    blocks = code_blocks(answer)
    if not 1 <= int(words) <= len(blocks):
        found = plural(len(blocks), "code block") if blocks else "no code blocks"
        raise UsageError(f"The last answer has {found}.")
    return blocks[int(words) - 1]


def code_blocks(text: str) -> list[str]:
    """The contents of the fenced code blocks of a text."""
    return [match[2].removesuffix("\n") for match in CODE_BLOCK.finditer(text)]


def _last_answer(conversation: Conversation) -> str:
    rows = conversation.db.messages.rows(conversation.session_id) if conversation.exists else []
    texts = (text_of(row.content).strip() for row in reversed(rows) if row.role == "assistant")
    answer = next(filter(None, texts), "")
    if not answer:
        raise UsageError("No answer to copy yet.")
    return answer
