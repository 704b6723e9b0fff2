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
    return Outcome(f"A new conversation: {conversation.new()}")


def _resume(conversation: Conversation, words: str) -> Outcome:
    if not words:
        return _sessions(conversation, "")
    conversation.resume(words)
    row = conversation.row()
    said = human_format.plural(row.get("message_count") or 0, "message")
    return Outcome(f"Going on with {row.get('title') or conversation.session_id} ({said})")


def _sessions(conversation: Conversation, words: str) -> Outcome:
    rows = conversation.db.list_sessions_rich(limit=LISTED, order_by_last_active=True)
    if words:
        rows = [row for row in rows if words.lower() in str(row).lower()]
    lines = [f"{row['id']}  {row.get('title') or row.get('preview') or ''}" for row in rows]
    return Outcome("\n".join(lines) or "No conversations yet.")


def _search(conversation: Conversation, words: str) -> Outcome:
    if not words:
        raise UsageError("what for? /search WORDS")
    hits = conversation.history.search_messages(words, limit=LISTED)
    lines = [f"{hit['session_id']}  {hit['snippet_text']}" for hit in hits]
    return Outcome("\n".join(lines) or "Nothing found.")


def _title(conversation: Conversation, words: str) -> Outcome:
    return Outcome(conversation.title(words) or "It has no title; /title TEXT gives it one.")


def _undo(conversation: Conversation, words: str) -> Outcome:
    number = _number(words, 1)
    prompts = conversation.prompts()
    asked = prompts[-number].text if len(prompts) >= number else ""
    rows = conversation.undo(number)
    text = f"{human_format.plural(rows, 'message')} taken back; /redo brings them back."
    return Outcome(text, fill=asked)


def _redo(conversation: Conversation, _words: str) -> Outcome:
    rows = conversation.redo()
    return Outcome(
        f"{human_format.plural(rows, 'message')} back." if rows else "Nothing to bring back."
    )


def _retry(conversation: Conversation, _words: str) -> Outcome:
    return Outcome(say=conversation.take_back_last())


def _branch(conversation: Conversation, words: str) -> Outcome:
    return Outcome(f"Going on in a branch: {conversation.branch(words)}")


def _compress(conversation: Conversation, words: str) -> Outcome:
    result = conversation.compress(words)
    if not result.summary:
        return Outcome("There is nothing to sum up yet.")
    return Outcome(
        f"{result.before} messages are now {result.after} for the model; "
        "the history keeps them all."
    )


def _handoff(conversation: Conversation, words: str) -> Outcome:
    platform = _required(words, "/handoff PLATFORM, such as telegram")
    if not conversation.exists:
        raise UsageError("nothing has been said in this conversation yet")
    if not conversation.db.request_handoff(conversation.session_id, platform):
        raise UsageError("it is being handed over already")
    return Outcome(f"The gateway goes on with it on {platform}, as soon as it runs.")


def _usage(conversation: Conversation, _words: str) -> Outcome:
    row = conversation.row()
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens")
    parts = [f"{row[name]:,} {name.replace('_', ' ')}" for name in names if row.get(name)]
    if not parts:
        return Outcome("No tokens yet.")
    cost = row.get("actual_cost_usd") or row.get("estimated_cost_usd")
    if cost:
        parts.append(f"about ${cost:.4f}")
    used, window = conversation.agent.context_tokens, conversation.agent.window
    if used:
        parts.append(f"{used / window:.0%} of the window of {window:,}")
    return Outcome(", ".join(parts))


def _status(conversation: Conversation, _words: str) -> Outcome:
    row = conversation.row()
    lines = [
        f"conversation  {conversation.session_id}",
        f"title         {row.get('title') or '-'}",
        f"model         {conversation.agent.model}",
        f"folder        {conversation.agent.cwd}",
        f"messages      {row.get('message_count') or 0}",
    ]
    return Outcome("\n".join(lines))


def _model(conversation: Conversation, words: str) -> Outcome:
    if not words:
        return Outcome(conversation.agent.model)
    return Outcome(f"{conversation.use_model(words)} answers from now on.")


def _memory(_conversation: Conversation, _words: str) -> Outcome:
    files = MemoryFiles()
    about = (("memory", "What it remembers"), ("user", "About you"))
    parts = []
    for target, heading in about:
        lines = "\n".join(f"- {one}" for one in files.entries(target)) or "(nothing yet)"
        parts.append(f"{heading} ({files.path(target)})\n{lines}")
    return Outcome("\n\n".join(parts))


def _skills(conversation: Conversation, _words: str) -> Outcome:
    rows = [
        (one.name, f"cannot be used: {one.problem}" if one.problem else one.description)
        for one in conversation.talk.skills
    ]
    return Outcome(_columns(rows) or "No skills yet; docs/how-to/extend-the-agent.md tells how.")


def _tools(conversation: Conversation, _words: str) -> Outcome:
    rows = [
        (one.name or one.origin, f"cannot be used: {one.problem}" if one.problem else _about(one))
        for one in conversation.talk.inventory()
    ]
    return Outcome(_columns(rows))


def _about(item: Item) -> str:
    return item.description if item.origin == STANDARD else f"{item.description} ({item.origin})"


def _columns(rows: list[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:{width}}  {about}" for name, about in rows)


def _save(conversation: Conversation, words: str) -> Outcome:
    return Outcome(f"Written to {conversation.save(words)}")


def _approve(_conversation: Conversation, words: str) -> Outcome:
    choice = words.lower() or "once"
    if choice not in ALLOWING:
        raise UsageError(f"/approve {words}? It is one of {', '.join(ALLOWING)}.")
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
        raise UsageError(f"what? {usage}")
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
        raise UsageError(f"{words!r} is no number of exchanges; for example /undo 2")
    return int(words)


COMMANDS: Final = (
    SlashCommand("new", "end this conversation and begin another", _new, aliases=("reset",)),
    SlashCommand("resume", "go on with another conversation", _resume, "[ID or title]"),
    SlashCommand("sessions", "the latest conversations", _sessions, "[words]", while_busy=True),
    SlashCommand("search", "search all conversations", _search, "WORDS", while_busy=True),
    SlashCommand("title", "show or set the title", _title, "[text]", while_busy=True),
    SlashCommand("undo", "take back the last exchanges", _undo, "[number]"),
    SlashCommand("redo", "bring back what /undo took", _redo),
    SlashCommand("retry", "ask the last question again", _retry),
    SlashCommand("branch", "go on in a second conversation", _branch, "[title]", ("fork",)),
    SlashCommand("handoff", "go on with it in a chat app", _handoff, "PLATFORM"),
    SlashCommand("compress", "sum up what was said, to make room", _compress, "[focus]"),
    SlashCommand("usage", "tokens and cost of this conversation", _usage, while_busy=True),
    SlashCommand("status", "what is going on", _status, while_busy=True),
    SlashCommand("model", "show or change the model", _model, "[name]"),
    SlashCommand("memory", "what is remembered for all conversations", _memory, while_busy=True),
    SlashCommand("skills", "what it has learnt to do", _skills, while_busy=True),
    SlashCommand("tools", "what it can do", _tools, while_busy=True),
    SlashCommand("approve", "allow what is asked for", _approve, "[once|session|always]",
                 while_busy=True),
    SlashCommand("deny", "do not allow it", _deny, while_busy=True),
    SlashCommand("stop", "stop the running turn", _stop, while_busy=True),
    SlashCommand("queue", "say it when the turn is over", _queue, "TEXT", while_busy=True),
    SlashCommand("steer", "say it to the running turn", _steer, "TEXT", while_busy=True),
    SlashCommand("save", "write the conversation to a file", _save, "[FILE.md or .html]",
                 while_busy=True),
    SlashCommand("help", "this list", _help, while_busy=True),
    SlashCommand("quit", "leave; the conversation stays", _quit, aliases=("exit", "q"),
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
        f"there is no /{name}; " + (f"did you mean {meant}?" if meant else "see /help")
    )


def run(conversation: Conversation, line: str) -> Outcome:
    """Carry out a line that begins with a slash."""
    name, _, words = line[1:].partition(" ")
    return find(name.lower()).run(conversation, words.strip())
