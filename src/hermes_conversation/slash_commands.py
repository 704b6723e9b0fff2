"""Commands inside a conversation, `/name words`: one table for every front end.

A command gets the conversation and the words behind its name, and answers with text to show and,
where it is more than text, with what to do next.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.memory.files import MemoryFiles
from hermes_agent.toolbox import STANDARD
from hermes_core import human_format
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.toolbox import Item
    from hermes_conversation.conversation import Conversation

LISTED: Final = 10
ALLOWING: Final = ("once", "session", "always")


class Outcome(NamedTuple):
    """What a command says, and what the front end is to do.

    Say something, refill the line, leave; and with a turn that runs: stop it, say something
    to it or after it, answer what it asks.
    """

    text: str = ""
    say: str = ""
    fill: str = ""
    leave: bool = False
    stop: bool = False
    steer: str = ""
    queue: str = ""
    answer: str = ""


class SlashCommand(NamedTuple):
    """One command."""

    name: str
    help: str
    run: Callable[[Conversation, str], Outcome]
    hint: str = ""
    aliases: tuple[str, ...] = ()
    while_busy: bool = False  # whether it makes sense while a turn runs


def _new(conversation: Conversation, _words: str) -> Outcome:
    return Outcome(f"Started a new conversation: {conversation.new()}")


def _resume(conversation: Conversation, words: str) -> Outcome:
    if not words:
        return _sessions(conversation, "")
    conversation.resume(words)
    row = conversation.row()
    count = human_format.plural(row.get("message_count") or 0, "message")
    return Outcome(f"Resumed {row.get('title') or conversation.session_id} ({count})")


def _sessions(conversation: Conversation, words: str) -> Outcome:
    rows = conversation.db.list_sessions_rich(limit=LISTED, order_by_last_active=True)
    if words:
        rows = [row for row in rows if words.lower() in str(row).lower()]
    lines = [f"{row['id']}  {row.get('title') or row.get('preview') or ''}" for row in rows]
    return Outcome("\n".join(lines) or "No conversations yet.")


def _search(conversation: Conversation, words: str) -> Outcome:
    hits = conversation.history.search_messages(_required(words, "/search WORDS"), limit=LISTED)
    lines = [f"{hit['session_id']}  {hit['snippet_text']}" for hit in hits]
    return Outcome("\n".join(lines) or "No matching messages.")


def _title(conversation: Conversation, words: str) -> Outcome:
    return Outcome(conversation.title(words) or "No title. Set one with /title TEXT.")


def _undo(conversation: Conversation, words: str) -> Outcome:
    number = _number(words, 1)
    prompts = conversation.prompts()
    asked = prompts[-number].text if len(prompts) >= number else ""
    rows = conversation.undo(number)
    text = f"Undid {human_format.plural(rows, 'message')}. /redo restores them."
    return Outcome(text, fill=asked)


def _redo(conversation: Conversation, _words: str) -> Outcome:
    rows = conversation.redo()
    return Outcome(
        f"Restored {human_format.plural(rows, 'message')}." if rows else "Nothing to redo."
    )


def _retry(conversation: Conversation, _words: str) -> Outcome:
    return Outcome(say=conversation.take_back_last())


def _branch(conversation: Conversation, words: str) -> Outcome:
    return Outcome(f"Switched to a new branch: {conversation.branch(words)}")


def _compress(conversation: Conversation, words: str) -> Outcome:
    result = conversation.compress(words)
    if not result.summary:
        return Outcome("Nothing to summarize yet.")
    return Outcome(
        f"Summarized: the model now sees {result.after} messages instead of {result.before}; "
        "the history is unchanged."
    )


def _handoff(conversation: Conversation, words: str) -> Outcome:
    platform = _required(words, "/handoff PLATFORM, e.g. /handoff telegram")
    if not conversation.exists:
        raise UsageError("This conversation has no messages yet.")
    if not conversation.db.request_handoff(conversation.session_id, platform):
        raise UsageError("A hand-off is already pending.")
    return Outcome(
        f"Handed off to {platform.capitalize()}; the gateway will pick it up once it is running."
    )


def _usage(conversation: Conversation, _words: str) -> Outcome:
    row = conversation.row()
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens")
    parts = [f"{row[name]:,} {name.replace('_', ' ')}" for name in names if row.get(name)]
    if not parts:
        return Outcome("No tokens used yet.")
    cost = row.get("actual_cost_usd") or row.get("estimated_cost_usd")
    if cost:
        parts.append(f"about ${cost:.4f}")
    used, window = conversation.agent.context_tokens, conversation.agent.window
    if used:
        parts.append(f"{used / window:.0%} of the {window:,} token context window")
    return Outcome(", ".join(parts))


def _status(conversation: Conversation, _words: str) -> Outcome:
    row = conversation.row()
    lines = [
        f"conversation  {conversation.session_id}",
        f"title         {row.get('title') or '-'}",
        f"model         {conversation.agent.model}",
        f"directory     {conversation.agent.cwd}",
        f"messages      {row.get('message_count') or 0}",
    ]
    return Outcome("\n".join(lines))


def _model(conversation: Conversation, words: str) -> Outcome:
    if not words:
        return Outcome(conversation.agent.model)
    return Outcome(f"Model set to {conversation.use_model(words)}.")


def _memory(_conversation: Conversation, _words: str) -> Outcome:
    files = MemoryFiles()
    about = (("memory", "Memory"), ("user", "About you"))
    parts = []
    for target, heading in about:
        lines = "\n".join(f"- {one}" for one in files.entries(target)) or "(empty)"
        parts.append(f"{heading} ({files.path(target)})\n{lines}")
    return Outcome("\n\n".join(parts))


def _skills(conversation: Conversation, _words: str) -> Outcome:
    rows = [
        (one.name, f"unavailable: {one.problem}" if one.problem else one.description)
        for one in conversation.talk.skills
    ]
    return Outcome(_columns(rows) or "No skills installed. See docs/how-to/extend-the-agent.md.")


def _tools(conversation: Conversation, _words: str) -> Outcome:
    rows = [
        (one.name or one.origin, f"unavailable: {one.problem}" if one.problem else _about(one))
        for one in conversation.talk.inventory()
    ]
    return Outcome(_columns(rows))


def _about(item: Item) -> str:
    return item.description if item.origin == STANDARD else f"{item.description} ({item.origin})"


def _columns(rows: list[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:{width}}  {about}" for name, about in rows)


def _save(conversation: Conversation, words: str) -> Outcome:
    return Outcome(f"Saved to {conversation.save(words)}")


def _approve(_conversation: Conversation, words: str) -> Outcome:
    choice = words.lower() or "once"
    if choice not in ALLOWING:
        raise UsageError(f"Usage: /approve {'|'.join(ALLOWING)}")
    return Outcome(answer=choice)


def _deny(_conversation: Conversation, _words: str) -> Outcome:
    return Outcome(answer="deny")


def _stop(_conversation: Conversation, _words: str) -> Outcome:
    return Outcome(stop=True)


def _queue(_conversation: Conversation, words: str) -> Outcome:
    return Outcome(queue=_required(words, "/queue TEXT"))


def _steer(_conversation: Conversation, words: str) -> Outcome:
    return Outcome(steer=_required(words, "/steer TEXT"))


def _required(words: str, usage: str) -> str:
    if not words:
        raise UsageError(f"Usage: {usage}")
    return words


def _help(_conversation: Conversation, _words: str) -> Outcome:
    width = max(len(f"/{one.name} {one.hint}") for one in COMMANDS)
    return Outcome(
        "\n".join(f"{f'/{one.name} {one.hint}':{width}}  {one.help}" for one in COMMANDS)
    )


def _quit(_conversation: Conversation, _words: str) -> Outcome:
    return Outcome(leave=True)


def _number(words: str, default: int) -> int:
    if not words:
        return default
    if not words.isdigit() or int(words) < 1:
        raise UsageError(f"Invalid number of exchanges {words!r}. Example: /undo 2")
    return int(words)


COMMANDS: Final = (
    SlashCommand("new", "end this conversation and start a new one", _new, aliases=("reset",)),
    SlashCommand("resume", "continue another conversation", _resume, "[ID or title]"),
    SlashCommand("sessions", "list recent conversations", _sessions, "[words]", while_busy=True),
    SlashCommand("search", "search all conversations", _search, "WORDS", while_busy=True),
    SlashCommand("title", "show or set the title", _title, "[text]", while_busy=True),
    SlashCommand("undo", "undo the last exchanges", _undo, "[number]"),
    SlashCommand("redo", "restore what /undo removed", _redo),
    SlashCommand("retry", "ask the last question again", _retry),
    SlashCommand("branch", "continue in a copy of this one", _branch, "[title]", ("fork",)),
    SlashCommand("handoff", "continue this conversation in a chat app", _handoff, "PLATFORM"),
    SlashCommand("compress", "summarize older messages to free up context", _compress, "[focus]"),
    SlashCommand("usage", "show tokens and cost of this conversation", _usage, while_busy=True),
    SlashCommand("status", "show the state of this conversation", _status, while_busy=True),
    SlashCommand("model", "show or change the model", _model, "[name]"),
    SlashCommand("memory", "show what is always remembered", _memory, while_busy=True),
    SlashCommand("skills", "list skills", _skills, while_busy=True),
    SlashCommand("tools", "list tools", _tools, while_busy=True),
    SlashCommand("approve", "allow the pending command", _approve, "[once|session|always]",
                 while_busy=True),
    SlashCommand("deny", "deny the pending command", _deny, while_busy=True),
    SlashCommand("stop", "stop the running turn", _stop, while_busy=True),
    SlashCommand("queue", "send a message after the current turn", _queue, "TEXT", while_busy=True),
    SlashCommand("steer", "send a message to the running turn", _steer, "TEXT", while_busy=True),
    SlashCommand("save", "save the conversation to a file", _save, "[FILE.md or .html]",
                 while_busy=True),
    SlashCommand("help", "list commands", _help, while_busy=True),
    SlashCommand("quit", "exit; the conversation is saved", _quit, aliases=("exit", "q"),
                 while_busy=True),
)  # fmt: skip


def find(name: str) -> SlashCommand:
    """The command called *name*; an error that names close ones if there is none."""
    for one in COMMANDS:
        if name == one.name or name in one.aliases:
            return one
    close = difflib.get_close_matches(name, [one.name for one in COMMANDS], 2)
    meant = " or ".join(f"/{one}" for one in close)
    raise UsageError(
        f"Unknown command: /{name}. " + (f"Did you mean {meant}?" if meant else "Type /help.")
    )


def run(conversation: Conversation, line: str) -> Outcome:
    """Carry out a line that begins with a slash."""
    name, _, words = line[1:].partition(" ")
    return find(name.lower()).run(conversation, words.strip())
