"""Slash commands of conversations, `/name arguments`: one table for every front end.

A command gets the conversation and the text after its name. It returns text to display and
actions for the front end.
"""

from __future__ import annotations

import difflib
import re
from enum import Flag, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.permissions.grants import check_rule
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.toolbox import STANDARD_ORIGIN
from hermes_agent.tools.todo import format_items
from hermes_conversation import (
    file_commands,
    history_answers,
    origin_report,
    remembered_facts,
    scheduled_jobs,
)
from hermes_conversation.agent_factory import job_requester
from hermes_conversation.handoff import hand_off, hand_to_agent, is_agent
from hermes_conversation.history_scope import MATCHING_MESSAGES
from hermes_conversation.plugin_commands import provided_commands
from hermes_conversation.prompt_commands import commands_in_files
from hermes_conversation.slash_output import context_report, list_models, text_to_copy, usage_line
from hermes_core import human_format, roles
from hermes_core.command_name import with_command_name
from hermes_core.errors import UsageError
from hermes_core.roles import Right, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.project.commands import FileCommand
    from hermes_agent.toolbox import ToolItem
    from hermes_conversation.conversation import Conversation
    from hermes_conversation.plugin_commands import ProvidedCommand
    from hermes_state.search.hits import FoundMessage

LIST_LIMIT: Final = 10
MODE_HELP: Final = {
    "plan": "nothing is written and the network is not used",
    "workspace": "writes in the working folder; risky actions need approval",
    "full": "no limits except for commands that are never allowed",
}
BRANCHED_TEXT: Final = "Switched to a new branch: {}"
INIT_PROMPT: Final = (
    "Look at this folder and write a file AGENTS.md for agents that work here: what the project "
    "is; the exact commands to set it up, build, test and run it; how the code is organized; rules "
    "that are not obvious from the code. Check commands before you write them down. Stay below 100 "
    "lines. If AGENTS.md exists, improve it and keep what is right."
)
APPROVALS: Final = ("once", "session", "always")
MEMORY_HINT: Final = "[why|pin|unpin|reject NUMBER | search WORDS | undo]"
HANDOFF_HINT: Final = "TARGET [--redact]"
REDACT_OPTION: Final = "--redact"
MEMORY_DONE: Final = {"pin": "Pinned", "unpin": "Unpinned", "reject": "Rejected"}
MEMORY_FILES: Final = "To edit it as text: MEMORY.md and USER.md in {}"
NOT_FOR_GUESTS: Final = "/{} is not available to guests. The owner can pair you as a member."
OWNER_ONLY: Final = "/{} is only available to the owner (see `hermes people`)."


class CommandOutcome(NamedTuple):
    """The text of a command and the actions for the front end.

    `say` sends a prompt, `fill` sets the input line, `leave` exits, after `is_handed_off` a
    terminal continues with a new conversation. For a running turn: `stop` interrupts it, `steer`
    and `queue` send input during and after it, `answer` answers its question. `copy` is for the
    clipboard of the terminal.
    """

    text: str = ""
    say: str = ""
    fill: str = ""
    leave: bool = False
    is_handed_off: bool = False
    stop: bool = False
    steer: str = ""
    queue: str = ""
    answer: str = ""
    copy: str = ""


class Surface(Flag):
    """Where a command is typed."""

    TERMINAL = auto()  # `hermes chat`
    SCREEN = auto()  # the terminal UI
    PAGE = auto()
    EDITOR = auto()
    CHAT = auto()


class ChatRule(Flag):
    """How the gateway treats a command that is sent in a chat."""

    NONE = 0
    ANSWERS = auto()  # answers the question of the running turn
    OVERTAKES = auto()  # is answered before the messages that wait in front of it
    DURING_TURN = auto()  # acts on the running turn
    RUNS_TURN = auto()  # runs the model; refused when the budget is spent
    ROUTES = auto()  # only switches the conversation of the chat: any node may run it


ELSEWHERE: Final = {
    Surface.TERMINAL: "/{} is not available in a terminal.",
    Surface.SCREEN: "/{} is not available in the terminal UI.",
    Surface.PAGE: "/{} is not available to pages. Use it in a terminal.",
    Surface.EDITOR: "/{} is not available in an editor, which has its own way to do this. In a "
    "terminal, `hermes -r` continues this conversation with all commands.",
    Surface.CHAT: "/{} is only available in the terminal.",
}
_TERMINALS: Final = Surface.TERMINAL | Surface.SCREEN
_EVERYWHERE: Final = ~Surface(0)
_NOT_IN_CHATS: Final = ~Surface.CHAT
_NOT_IN_EDITORS: Final = ~Surface.EDITOR  # an editor has its own threads, buttons and queue
_ANSWER: Final = ChatRule.ANSWERS | ChatRule.OVERTAKES | ChatRule.DURING_TURN
_REPORT: Final = ChatRule.OVERTAKES | ChatRule.DURING_TURN


class SlashCommand(NamedTuple):
    """One command. Whatever a new command does not state is denied."""

    name: str
    help: str  # an empty one is not listed
    run: Callable[[Conversation, str], CommandOutcome]
    hint: str = ""
    aliases: tuple[str, ...] = ()
    while_busy: bool = False  # whether it is allowed while a turn runs
    right: Right = Right.ADMINISTER
    surfaces: Surface = _TERMINALS
    repeatable: bool = False  # whether the gateway may run it again after a crash
    chat: ChatRule = ChatRule.NONE
    provided: ProvidedCommand | None = None  # the command of a plugin

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and aliases."""
        return (self.name, *self.aliases)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that the hint offers as the first argument: `[plan|full]` names two."""
        if "|" not in self.hint:
            return ()
        words = [part.split(" ")[0] for part in re.split(r"[\[\]|]+", self.hint) if part]
        return tuple(word for word in words if word.islower())


def _new(conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(f"Started a new conversation: {conversation.new()}")


def _resume(conversation: Conversation, words: str) -> CommandOutcome:
    if not words:
        return _sessions(conversation, "")
    conversation.resume(words)
    row = conversation.row()
    count = human_format.plural(row.message_count if row else 0, "message")
    name = (row and row.title) or conversation.session_id
    return CommandOutcome(f"Resumed {name} ({count})")


def _sessions(conversation: Conversation, words: str) -> CommandOutcome:
    history = conversation.history
    if words:
        rows = history.matching(words, limit=LIST_LIMIT)
    else:
        rows = history.sessions(limit=LIST_LIMIT, order_by_last_active=True)
    lines = [f"{row.id}  {row.name}" for row in rows]
    nothing = "No matching conversations." if words else "No conversations yet."
    return CommandOutcome("\n".join(lines) or nothing)


def _search(conversation: Conversation, words: str) -> CommandOutcome:
    history = conversation.history
    answer = history.answer(_required(words, "/search WORDS"), limit=MATCHING_MESSAGES)
    found: dict[str, list[FoundMessage]] = {}
    for hit in answer.hits:
        found.setdefault(hit.session_id, []).append(hit)
    lines = [
        f"No message contains “{each.written}”: used “{each.used}”." for each in answer.corrections
    ]
    for session_id, hits in list(found.items())[:LIST_LIMIT]:
        more = f"  (and {len(hits) - 1} more)" if len(hits) > 1 else ""
        title = history.get_session_title(session_id) or human_format.local(hits[0].timestamp)
        lines.append(f"{session_id}  {title}: {hits[0].snippet_text}{more}")
    return CommandOutcome("\n".join(lines) if found else "No matching messages.")


def _ask(conversation: Conversation, words: str) -> CommandOutcome:
    question = _required(words, "/ask QUESTION")
    agent = conversation.agent
    quoted = history_answers.quote(
        conversation.history,
        question,
        history_answers.budget_of(agent.window),
        beside=conversation.session_id,
    )
    if agent.is_demo:
        return CommandOutcome(history_answers.as_text(quoted))
    is_stored = conversation.exists
    answer = history_answers.answer_from(
        quoted, lambda request: agent.complete(request, is_counted=is_stored), agent.model
    )
    return CommandOutcome(history_answers.as_text(answer))


def _title(conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(conversation.title(words) or "No title. Set one with /title TEXT.")


def _undo(conversation: Conversation, words: str) -> CommandOutcome:
    request = file_commands.parse_undo(words)
    texts = []
    if request.scope in {file_commands.FILES, file_commands.BOTH}:
        texts.append(file_commands.undo_files(conversation, request.exchanges))
    if request.scope == file_commands.FILES:
        return CommandOutcome(texts[0])
    files = conversation.files
    changed = files.of_last_prompts(request.exchanges) if files.is_available else None
    prompts = conversation.prompts()
    asked = prompts[-min(request.exchanges, len(prompts))].text if prompts else ""
    rows = conversation.undo(request.exchanges)
    done = f"Undid {human_format.plural(rows, 'message')}. /redo restores them."
    texts.append(done if rows else "There is nothing to undo.")
    if not request.scope and changed:
        texts.append(file_commands.kept_files_notice(changed))
    return CommandOutcome("\n".join(filter(None, texts)), fill=asked)


def _diff(conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(file_commands.diff(conversation, words))


def _checkpoints(conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(file_commands.checkpoints(conversation, words))


def _redo(conversation: Conversation, _words: str) -> CommandOutcome:
    before = {prompt.message_id for prompt in conversation.prompts()}
    rows = conversation.redo()
    if not rows:
        return CommandOutcome("Nothing to redo.")
    done = f"Restored {human_format.plural(rows, 'message')}."
    restored = [prompt.message_id for prompt in conversation.prompts()]
    first = min(set(restored) - before, default=0)
    notice = file_commands.undone_files_notice(conversation.files, first)
    return CommandOutcome("\n".join(filter(None, (done, notice))))


def _retry(conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(say=conversation.undo_last_prompt())


def _branch(conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(BRANCHED_TEXT.format(conversation.branch(words)))


def _compress(conversation: Conversation, words: str) -> CommandOutcome:
    result = conversation.compress(words)
    if not result.summary:
        return CommandOutcome("Nothing to summarize yet.")
    return CommandOutcome(
        f"Summarized: the model now sees {result.after} messages instead of {result.before}; "
        "the history is unchanged."
    )


def _handoff(conversation: Conversation, words: str) -> CommandOutcome:
    words = _required(words, f"/handoff {HANDOFF_HINT}, e.g. /handoff codex or /handoff telegram")
    target, _, option = words.partition(" ")
    if option not in ("", REDACT_OPTION):
        raise UsageError(f"Usage: /handoff {HANDOFF_HINT}")
    if not conversation.exists:
        raise UsageError("This conversation has no messages yet.")
    db, session_id = conversation.db, conversation.session_id
    if is_agent(target.lower()):
        is_redacted = option == REDACT_OPTION
        handoff = hand_to_agent(db, session_id, target.lower(), is_redacted=is_redacted)
        return CommandOutcome(handoff.text)
    if option:
        raise UsageError("A chat app gets the conversation itself; --redact is for agents.")
    return CommandOutcome(hand_off(db, session_id, target), is_handed_off=True)


def _usage(conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(usage_line(conversation))


def _status(conversation: Conversation, _words: str) -> CommandOutcome:
    row = conversation.row()
    undone = conversation.db.edits.undone_count(conversation.session_id)
    shown = row.message_count - undone if row else 0
    lines = [
        f"conversation  {conversation.session_id}",
        f"title         {(row and row.title) or '-'}",
        f"model         {conversation.agent.model}",
        f"folder        {conversation.agent.cwd}",
        f"messages      {shown}" + (f" ({undone} more undone)" if undone else ""),
    ]
    return CommandOutcome("\n".join(lines))


def _model(conversation: Conversation, words: str) -> CommandOutcome:
    if not words:
        return CommandOutcome(f"{conversation.agent.model}\n/model list [WORDS] lists the models.")
    name, _, wanted = words.partition(" ")
    if name == "list":
        return CommandOutcome(list_models(wanted))
    return CommandOutcome(f"Model set to {conversation.use_model(words)}.")


def _memory(conversation: Conversation, words: str) -> CommandOutcome:
    memory = conversation.memory
    if memory is None:
        raise UsageError("Memory is not available in a chat that others read.")
    name, _, rest = words.partition(" ")
    facts = remembered_facts.all_facts(memory)
    if name in ("", "list"):
        active = [fact for fact in facts if fact.state == "active"]
        shown = remembered_facts.as_list(active) or "Nothing is remembered yet."
        return CommandOutcome(f"{shown}\n\n{MEMORY_FILES.format(memory.path('memory').parent)}")
    if name == "search":
        found = remembered_facts.matching(facts, rest)
        return CommandOutcome(remembered_facts.as_list(found) or "No matching facts.")
    if name == "undo":
        undone = remembered_facts.undo_last(conversation.db, memory)
        texts = (conversation.db.facts.get(change.fact_id) for change in undone)
        return CommandOutcome("\n".join(f"Undone. {fact.state}: {fact.text}" for fact in texts))
    if name not in ("why", "pin", "unpin", "reject"):
        raise UsageError(f"Usage: /memory {MEMORY_HINT}")
    fact = remembered_facts.numbered(memory, rest.strip())
    if name == "why":
        return CommandOutcome(f"{fact.text}\n{remembered_facts.shown(conversation.db, fact).why()}")
    if name == "reject":
        memory.set_state(fact, "owner", is_active=False)
    else:
        memory.pin(fact, "owner", is_pinned=name == "pin")
    return CommandOutcome(f"{MEMORY_DONE[name]}: {fact.text}\n/memory undo undoes it.")


def _why(conversation: Conversation, words: str) -> CommandOutcome:
    if not words:
        raise UsageError("Usage: /why FILE[:LINE]")
    folder = conversation.agent.cwd
    place = origin_report.parse_place(words, folder)
    origin_report.readable_file(str(place.file), folder)
    conversation.db.calls.fill(origin_report.MAX_FILL_SECONDS)
    report = origin_report.report_of(conversation.db, place)
    return CommandOutcome(with_command_name(origin_report.as_text(report)))


def _skills(conversation: Conversation, _words: str) -> CommandOutcome:
    rows = [
        (skill.name, f"unavailable: {skill.problem}" if skill.problem else skill.description)
        for skill in conversation.bundle.skills
    ]
    return CommandOutcome(
        _columns(rows) or "No skills installed. See docs/how-to/extend-the-agent.md."
    )


def _tools(conversation: Conversation, _words: str) -> CommandOutcome:
    rows = [
        (item.name or item.origin, f"unavailable: {item.problem}" if item.problem else _about(item))
        for item in conversation.bundle.inventory()
    ]
    return CommandOutcome(_columns(rows))


def _about(item: ToolItem) -> str:
    return (
        item.description
        if item.origin == STANDARD_ORIGIN
        else f"{item.description} ({item.origin})"
    )


def _columns(rows: list[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:{width}}  {about}" for name, about in rows)


def _todo(conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(format_items(conversation.todo_items()) or "The todo list is empty.")


def _save(conversation: Conversation, words: str, *, within_folder: bool = True) -> CommandOutcome:
    return CommandOutcome(f"Saved to {conversation.save(words, within_folder=within_folder)}")


def _copy(conversation: Conversation, words: str) -> CommandOutcome:
    text = text_to_copy(conversation, words)
    count = human_format.plural(len(text), "character")
    return CommandOutcome(f"Copied {count}.", copy=text)


def _context(conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(context_report(conversation.agent))


def _init(_conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(say=f"{INIT_PROMPT} {words}".strip())


def _image(conversation: Conversation, words: str) -> CommandOutcome:
    picture = conversation.attach(Path(_required(words, "/image FILE")).expanduser())
    return CommandOutcome(f"Attached to the next message: {picture.label}")


def _elsewhere(_conversation: Conversation, _words: str) -> CommandOutcome:
    raise UsageError("This command belongs to a front end.")  # which runs it itself


def _approve(_conversation: Conversation, words: str) -> CommandOutcome:
    choice, _, rule = words.partition(" ")
    choice = choice.lower() or "once"
    if choice not in APPROVALS or (choice == "once" and rule):
        raise UsageError(f"Usage: /approve {'|'.join(APPROVALS)} [RULE]")
    return CommandOutcome(answer=f"{choice} {check_rule(rule)}" if rule.strip() else choice)


def _permissions(conversation: Conversation, words: str) -> CommandOutcome:
    verb, _, rule = words.partition(" ")
    if verb == "remove":
        rule = _required(rule.strip(), "/permissions remove RULE")
        is_removed = conversation.remove_rule(rule)
        return CommandOutcome(f"Removed {rule}" if is_removed else f"No rule {rule!r}.")
    if verb:
        mode = conversation.set_mode(verb.lower())
        return CommandOutcome(f"Mode: {mode}, {MODE_HELP[mode]}")
    sandbox = find_sandbox()
    rows = [
        ("mode", f"{conversation.mode}: {MODE_HELP[conversation.mode]}"),
        ("sandbox", sandbox.name if sandbox.is_available else f"none ({sandbox.problem})"),
        ("folder", str(conversation.agent.cwd)),
    ]
    for scope, rules in conversation.permission_rules().items():
        rows += [(f"allowed ({scope})", rule) for rule in rules]
    return CommandOutcome(_columns(rows))


def _trust(conversation: Conversation, _words: str) -> CommandOutcome:
    """Which files are used; trust itself is given in a terminal, where the user sees them."""
    trust = conversation.bundle.extensions.trust
    if trust is None or not trust.project.files:
        return CommandOutcome("This folder has no files that need trust.")
    rows = [(file.name, "trusted") for file in trust.trusted]
    rows += [(item.file.name, f"{item.state}, ignored") for item in trust.pending]
    hint = f"\nIn a terminal: hermes trust {trust.project.root}" if trust.pending else ""
    return CommandOutcome(_columns(rows) + hint)


def _deny(_conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(answer=f"deny {words}".strip())


def _stop(_conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(stop=True)


def _queue(_conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(queue=_required(words, "/queue TEXT"))


def _steer(_conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(steer=_required(words, "/steer TEXT"))


def _remind(conversation: Conversation, words: str) -> CommandOutcome:
    return CommandOutcome(
        scheduled_jobs.remind(conversation.db, job_requester(conversation.options), words)
    )


def _required(words: str, usage: str) -> str:
    if not words:
        raise UsageError(f"Usage: {usage}")
    return words


def _help(
    conversation: Conversation, words: str, surface: Surface = Surface.TERMINAL
) -> CommandOutcome:
    folder = project_folder(conversation)
    if words:
        command = find(words.lower().removeprefix("/"), folder)
        also = ", ".join(f"/{alias}" for alias in command.aliases)
        text = f"/{command.name} {command.hint}".strip() + f"\n{command.help}"
        return CommandOutcome(f"{text}\nother names: {also}" if also else text)
    rows = [(f"/{command.name}", command.help) for command in listed_commands(surface, folder)]
    return CommandOutcome(f"{_columns(rows)}\n/help COMMAND shows its arguments.")


def _quit(_conversation: Conversation, _words: str) -> CommandOutcome:
    return CommandOutcome(leave=True)


COMMANDS: Final = (
    SlashCommand("new", "end this conversation and start a new one", _new,
                 "", ("reset", "clear"), False, Right.CONVERSE, _NOT_IN_EDITORS, True,
                 ChatRule.ROUTES),
    SlashCommand("resume", "continue another conversation", _resume,
                 "[ID or title]", (), False, Right.CHAT_HISTORY, _NOT_IN_EDITORS, True,
                 ChatRule.ROUTES),
    SlashCommand("sessions", "list recent conversations", _sessions,
                 "[words]", (), True, Right.CHAT_HISTORY, _EVERYWHERE, True, ChatRule.OVERTAKES),
    SlashCommand("search", "search all conversations", _search,
                 "WORDS", (), True, Right.CHAT_HISTORY, _EVERYWHERE, True),
    SlashCommand("ask", "answer a question from all conversations", _ask,
                 "QUESTION", (), False, Right.CHAT_HISTORY, _EVERYWHERE, True,
                 ChatRule.RUNS_TURN),
    SlashCommand("title", "show or set the title", _title,
                 "[text]", (), True, Right.CONVERSE, _EVERYWHERE, True),
    SlashCommand("undo", "undo exchanges and file changes", _undo,
                 file_commands.UNDO_HINT, (), False, Right.CONVERSE, _EVERYWHERE),
    SlashCommand("redo", "restore what /undo removed", _redo,
                 "", (), False, Right.CONVERSE, _EVERYWHERE),
    SlashCommand("diff", "show what this conversation changed", _diff,
                 file_commands.DIFF_HINT, (), True, Right.FILES, _EVERYWHERE, True),
    SlashCommand("checkpoints", "list or restore changes", _checkpoints,
                 file_commands.CHECKPOINTS_HINT, (), False, Right.FILES, _EVERYWHERE),
    SlashCommand("retry", "ask the last question again", _retry,
                 "", (), False, Right.CONVERSE, _EVERYWHERE, False, ChatRule.RUNS_TURN),
    SlashCommand("branch", "continue in a copy of this one", _branch,
                 "[title]", ("fork",), False, Right.CONVERSE, _NOT_IN_EDITORS, True),
    SlashCommand("handoff", "continue in a chat app or another agent", _handoff,
                 HANDOFF_HINT, (), False, Right.ADMINISTER, _NOT_IN_EDITORS, True),
    SlashCommand("compress", "summarize older messages to free context", _compress,
                 "[focus]", ("compact",), False, Right.CONVERSE, _EVERYWHERE, False,
                 ChatRule.RUNS_TURN),
    SlashCommand("usage", "show tokens and cost of this conversation", _usage,
                 "", ("cost",), True, Right.CONVERSE, _EVERYWHERE, True, _REPORT),
    SlashCommand("status", "show the state of this conversation", _status,
                 "", (), True, Right.CONVERSE, _EVERYWHERE, True, _REPORT),
    SlashCommand("model", "show or change the model", _model,
                 "[name | list [words]]", (), False, Right.ADMINISTER, _EVERYWHERE, True),
    SlashCommand("memory", "show what is remembered, and why", _memory,
                 MEMORY_HINT, (), True, Right.MEMORY, _EVERYWHERE, True),
    SlashCommand("why", "show which conversation wrote a line", _why,
                 "FILE[:LINE]", (), True, Right.ALL_FILES, _EVERYWHERE, True),
    SlashCommand("skills", "list skills", _skills,
                 "", (), True, Right.EXTENSIONS, _EVERYWHERE, True),
    SlashCommand("todo", "show the agent's todo list", _todo,
                 "", (), True, Right.CONVERSE, _EVERYWHERE, True),
    SlashCommand("tools", "list tools", _tools,
                 "", (), True, Right.CONVERSE, _EVERYWHERE, True),
    SlashCommand("approve", "allow the pending command", _approve,
                 "[once|session|always [RULE]]", (), True, Right.APPROVE, _NOT_IN_EDITORS, True,
                 _ANSWER),
    SlashCommand("deny", "deny the pending command", _deny,
                 "[REASON]", (), True, Right.CONVERSE, _NOT_IN_EDITORS, True, _ANSWER),
    SlashCommand("permissions", "show or change permissions", _permissions,
                 "[plan|workspace|full|remove RULE]", (), True, Right.ADMINISTER, _EVERYWHERE,
                 True),
    SlashCommand("trust", "show which files of this project are used", _trust,
                 "", (), True, Right.ADMINISTER, _EVERYWHERE, True),
    SlashCommand("stop", "stop the running turn", _stop,
                 "", (), True, Right.CONVERSE, _NOT_IN_EDITORS, True, ChatRule.DURING_TURN),
    SlashCommand("queue", "send a message after the current turn", _queue,
                 "TEXT", (), True, Right.CONVERSE, _NOT_IN_EDITORS, True, ChatRule.RUNS_TURN),
    SlashCommand("steer", "send a message to the running turn", _steer,
                 "TEXT", (), True, Right.CONVERSE, _NOT_IN_EDITORS, True,
                 ChatRule.RUNS_TURN | ChatRule.DURING_TURN),
    SlashCommand("remind", "set, list or remove reminders", _remind,
                 "WHEN TEXT|list|remove NUMBER", (), True, Right.SCHEDULE, _EVERYWHERE, True,
                 ChatRule.OVERTAKES),
    SlashCommand("export", "save the conversation to a file", _save,
                 "[FILE.md or .html]", ("save",), True, Right.ALL_FILES, _NOT_IN_CHATS),
    SlashCommand("copy", "copy the last answer or a code block", _copy,
                 "[number]", (), True, Right.ALL_FILES, _NOT_IN_CHATS),
    SlashCommand("context", "show what fills the context window", _context,
                 "", (), True, Right.CONVERSE, _EVERYWHERE, True),
    SlashCommand("init", "write AGENTS.md for this folder", _init,
                 "[wishes]", (), False, Right.ALL_FILES, _NOT_IN_CHATS),
    SlashCommand("image", "attach an image to the next message", _image,
                 "FILE", (), True, Right.ALL_FILES, _TERMINALS | Surface.EDITOR),
    SlashCommand("rewind", "rewind to an earlier message (F3)", _elsewhere,
                 "", (), False, Right.ALL_FILES, Surface.SCREEN),
    SlashCommand("tree", "show this conversation's branches (F4)", _elsewhere,
                 "", (), False, Right.ALL_FILES, Surface.SCREEN),
    SlashCommand("help", "list commands, or explain one", _help,
                 "[command]", (), True, Right.CONVERSE, _EVERYWHERE, True, ChatRule.OVERTAKES),
    SlashCommand("quit", "exit; the conversation is saved", _quit,
                 "", ("exit", "q"), True, Right.ALL_FILES, _TERMINALS),
    SlashCommand("whoami", "show your user ID and role", _elsewhere,
                 "", (), True, Right.CONVERSE, Surface.CHAT, True, ChatRule.OVERTAKES),
    SlashCommand("restart", "restart the gateway after current turns finish", _elsewhere,
                 "", (), True, Right.ADMINISTER, Surface.CHAT, True),
    SlashCommand("start", "", _elsewhere,
                 "", (), True, Right.CONVERSE, Surface.CHAT, True, ChatRule.OVERTAKES),
    SlashCommand("answer", "", _elsewhere,
                 "TEXT", (), True, Right.CONVERSE, Surface.CHAT, True, _ANSWER),
    SlashCommand("sent", "", _elsewhere,
                 "TEXT", (), True, Right.ADMINISTER, Surface.CHAT, True),
)  # fmt: skip


BUILT_IN_NAMES: Final = frozenset(name for command in COMMANDS for name in command.names)


def names_with(rule: ChatRule) -> frozenset[str]:
    """The names of the built-in commands with a rule."""
    return frozenset(name for command in COMMANDS if rule in command.chat for name in command.names)


def listed_commands(surface: Surface, cwd: Path | None = None) -> tuple[SlashCommand, ...]:
    """The commands that a front end offers; with *cwd*, those in trusted files of that project."""
    return tuple(item for item in _all(cwd) if item.help and surface in item.surfaces)


def _all(cwd: Path | None) -> tuple[SlashCommand, ...]:
    """The built-in commands, those of plugins and those in files; none replaces a built-in one."""
    provided = provided_commands(BUILT_IN_NAMES)
    files = commands_in_files({*BUILT_IN_NAMES, *provided}, cwd)
    return (*COMMANDS, *map(_of_plugin, provided.values()), *map(_of_file, files.values()))


def project_folder(conversation: Conversation) -> Path | None:
    """The folder whose project commands a conversation has; None if it has none."""
    may_extend = roles.may(conversation.options.role, roles.Right.EXTENSIONS)
    return conversation.agent.cwd if may_extend else None


def _of_file(command: FileCommand) -> SlashCommand:
    return SlashCommand(
        command.name,
        command.description or f"prompt in {command.path.name}",
        lambda _conversation, words: CommandOutcome(say=command.prompt(words)),
        command.hint,
        surfaces=_EVERYWHERE,
        repeatable=True,  # it only writes the prompt, which is stored once
    )


def _of_plugin(provided: ProvidedCommand) -> SlashCommand:
    command = provided.command
    return SlashCommand(
        command.name.lower(),
        command.description or f"command of the plugin {provided.plugin}",
        lambda _conversation, words: CommandOutcome(provided.run(words)),
        command.args_hint,
        while_busy=True,
        surfaces=_EVERYWHERE if command.for_pages else ~Surface.PAGE,
        provided=provided,
    )


def find(name: str, cwd: Path | None = None) -> SlashCommand:
    """The command called *name*; raise UsageError with similar names if it is unknown."""
    commands = COMMANDS if name in BUILT_IN_NAMES else _all(cwd)
    for command in commands:
        if name in command.names:
            return command
    close = difflib.get_close_matches(name, [item.name for item in commands if item.help], 2)
    meant = " or ".join(f"/{item}" for item in close)
    raise UsageError(
        f"Unknown command: /{name}. " + (f"Did you mean {meant}?" if meant else "Type /help.")
    )


def is_known(name: str) -> bool:
    """Whether a command has this name."""
    return name in BUILT_IN_NAMES or any(name == command.name for command in _all(None))


def require_surface(command: SlashCommand, surface: Surface) -> None:
    """Raise UsageError if a command is not available where it was typed."""
    if surface in command.surfaces:
        return
    if command.surfaces is Surface.CHAT:
        text = "/{} is only available in chats."
    elif command.surfaces is Surface.SCREEN and surface is Surface.TERMINAL:
        text = "/{} needs the terminal UI: run `hermes -c`."
    else:
        text = ELSEWHERE[surface]
    raise UsageError(with_command_name(text.format(command.name)))


def require_right(command: SlashCommand, role: Role, words: str) -> None:
    """Raise UsageError if a role may not use a command; the name of the model is not secret."""
    if roles.may(role, command.right) or (command.run is _model and not words.strip()):
        return
    is_for_members = roles.may(Role.MEMBER, command.right)
    text = NOT_FOR_GUESTS if role is Role.GUEST or is_for_members else OWNER_ONLY
    raise UsageError(text.format(command.name))


def run(
    conversation: Conversation, line: str, surface: Surface, role: Role | None = None
) -> CommandOutcome:
    """Run a line that starts with a slash, for a role (default: that of the conversation).

    Files are written outside the working folder only for a user at a terminal of this machine.
    """
    name, _, words = line[1:].partition(" ")
    command = find(name.lower(), project_folder(conversation))
    require_surface(command, surface)
    require_right(command, role or conversation.options.role, words)
    if command.run is _save and surface in _TERMINALS:
        return _save(conversation, words.strip(), within_folder=False)
    if command.run is _help:
        return _help(conversation, words.strip(), surface)
    return command.run(conversation, words.strip())
