"""Handlers for an open conversation: messages, history changes, branches, questions."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_agent.permissions.grants import parse_rules
from hermes_agent.sandbox.runner import find_sandbox
from hermes_agent.tools.prompter import ApprovalAnswer
from hermes_conversation import slash_commands
from hermes_conversation.attachments import pictures_of
from hermes_conversation.handoff import is_agent
from hermes_conversation.prompt_branches import prompt_versions
from hermes_conversation.slash_commands import Surface
from hermes_core import human_format
from hermes_core.errors import HermesError
from tui_gateway.frames import BUSY, INVALID_PARAMS, NO_AGENT, NOTHING_TO_DO, RpcError
from tui_gateway.handlers.environment import as_rpc, folder_of, surface_of
from tui_gateway.handlers.sessions import open_session, resolve_stored
from tui_gateway.live_session import TURN_RUNNING
from tui_gateway.protocol import (
    CommandResult,
    CommandSummary,
    PromptSummary,
    PromptVersionsView,
    RelatedSession,
    SessionChanged,
    SessionStatus,
    TodoStep,
    fields_of,
)
from tui_gateway.questions import CHOICES
from tui_gateway.turn_view import usage as usage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_conversation.agent_factory import ConversationOptions
    from hermes_conversation.conversation import Conversation
    from hermes_state.sessions.records import SessionRow
    from tui_gateway.dispatcher import Dispatcher
    from tui_gateway.live_session import LiveSession
    from tui_gateway.protocol import (
        AttachedImage,
        BranchView,
        CompressionView,
        DisplayedMessage,
        OpenedState,
        PermissionView,
        RetriedPrompt,
        SessionInfo,
        UsageView,
    )


class SwitchedConversation(NamedTuple):
    """The conversation that a command switched to, and its output."""

    opened: OpenedState
    output: str


def switch_by_command(
    peer: Dispatcher, live: LiveSession, command: str, argument: str
) -> SwitchedConversation | None:
    """Run a command that switches to another conversation; None for other commands."""
    if command == "new":
        opened = _switch(peer, live, None, "new_session")
        return SwitchedConversation(opened, f"A new conversation: {opened.stored_session_id}")
    if command == "resume" and argument:
        opened = _switch(peer, live, resolve_stored(peer, argument), "resumed_other")
        name = opened.info.title or opened.stored_session_id
        count = human_format.plural(opened.message_count, "message")
        return SwitchedConversation(opened, f"Resumed {name} ({count})")
    if command == "handoff" and not is_agent(argument.partition(" ")[0].lower()):
        _require_idle(live)
        line = f"/handoff {argument}"
        outcome = as_rpc(lambda: slash_commands.run(live.conversation, line, Surface.SCREEN))
        opened = _switch(peer, live, None, "handoff", ends_old=False)
        started = f"Started a new conversation: {opened.stored_session_id}"
        return SwitchedConversation(opened, f"{outcome.text}\n{started}")
    if command == "branch":
        opened = open_branch(peer, live, argument)
        return SwitchedConversation(opened, f"Switched to branch: {opened.stored_session_id}")
    return None


def open_branch(
    peer: Dispatcher,
    live: LiveSession,
    title: str,
    before_message: int = 0,
    *,
    stays: bool = False,
    keeps_images: bool = False,
) -> OpenedState:
    """Continue in a branch of this conversation, cut before a message if given.

    A client that *stays* has both open. With *keeps_images*, those of the message are attached to
    the next one.
    """
    _require_idle(live)
    prompts = live.conversation.prompts() if keeps_images else []
    pictures = [
        picture
        for prompt in prompts
        if prompt.message_id == before_message
        for picture in pictures_of(prompt.content)
    ]
    branch_id = as_rpc(
        lambda: live.conversation.create_branch(
            title, before_message, is_switched=not stays, is_used=not live.has_only(peer)
        )
    )
    if stays:
        opened = open_session(peer, _options_of(live, branch_id))
    else:
        opened = _switch(peer, live, branch_id, "branched")
    peer.hub.live(opened.session_id).conversation.pictures.extend(pictures)
    return opened


def _require_idle(live: LiveSession) -> None:
    if live.is_running:
        raise RpcError(BUSY, TURN_RUNNING)


def _switch(
    peer: Dispatcher,
    live: LiveSession,
    session_id: str | None,
    reason: str,
    *,
    ends_old: bool = True,
) -> OpenedState:
    """Switch to another conversation; the old one is closed if idle and without clients."""
    if session_id == live.conversation.session_id:
        return peer.hub.attach(live, peer)
    other = peer.hub.live_of(session_id) if session_id else None
    if other is None:
        opened = open_session(peer, _options_of(live, session_id))
    else:  # it keeps its own options
        opened = peer.hub.attach(other, peer)
    new_id = opened.stored_session_id
    peer.hub.replace(live, peer, reason, new_id, ends_old=ends_old)
    return opened


def _options_of(live: LiveSession, session_id: str | None) -> ConversationOptions:
    """The options of an open conversation, for another one."""
    conversation = live.conversation
    return conversation.options._replace(session_id=session_id, cwd=conversation.agent.cwd)


def submit(peer: Dispatcher, *, session_id: str, text: str) -> str:
    """Send a message."""
    _live(peer, session_id).submit(text)
    return "streaming"


def interrupt(peer: Dispatcher, *, session_id: str, text: str = "") -> bool:
    """Interrupt the turn; send text if given."""
    return _live(peer, session_id).interrupt(text)


def steer(peer: Dispatcher, *, session_id: str, text: str, images: str = "") -> str:
    """Steer the turn, or send now; with `images` (files, one per line) as session.queue."""
    live, files = _live(peer, session_id), images.splitlines()
    is_sent = as_rpc(lambda: live.steer(text, peer, files))
    return "streaming" if is_sent else "queued"


def queue(peer: Dispatcher, *, session_id: str, text: str, images: str = "") -> str:
    """Send after the turn, or now; `images` are files, one per line."""
    live, files = _live(peer, session_id), images.splitlines()
    is_sent = as_rpc(lambda: live.send(text, peer, files))
    return "streaming" if is_sent else "queued"


def title(peer: Dispatcher, *, session_id: str, title: str = "") -> str:
    """Show or set the title."""
    live = _live(peer, session_id)
    return as_rpc(lambda: live.conversation.title(title))


def history(peer: Dispatcher, *, session_id: str) -> list[DisplayedMessage]:
    """Return all messages."""
    return _live(peer, session_id).messages()


def usage(peer: Dispatcher, *, session_id: str) -> UsageView:
    """Tokens of the conversation."""
    return usage_of(_live(peer, session_id).conversation.row())


def status(peer: Dispatcher, *, session_id: str) -> SessionStatus:
    """The state of a conversation."""
    live = _live(peer, session_id)
    return SessionStatus(**fields_of(live.info()), status=live.status())


def set_folder(peer: Dispatcher, *, session_id: str, cwd: str) -> str:
    """Change the working folder."""
    with _changing(peer, session_id) as conversation:
        folder = as_rpc(lambda: conversation.move_to(Path(cwd).expanduser()))
    return str(folder)


def reload(peer: Dispatcher, *, session_id: str) -> SessionInfo:
    """Use the settings, the trusted files of the project and the keys as they are now."""
    live = _live(peer, session_id)
    with live.changing() as conversation:
        try:
            conversation.reload()
        except HermesError as error:
            raise RpcError(NO_AGENT, str(error)) from error
    live.emit(live.info())
    return live.info()


def attach_image(peer: Dispatcher, *, session_id: str, path: str) -> AttachedImage:
    """Attach an image to the next message."""
    live = _live(peer, session_id)
    picture = as_rpc(lambda: live.conversation.attach(Path(path).expanduser()))
    return {"attached": picture.name, "count": len(live.conversation.pictures)}


def detach_image(peer: Dispatcher, *, session_id: str, name: str = "") -> int:
    """Remove all attached images, or the one of which `image.attach` returned the name."""
    pictures = _live(peer, session_id).conversation.pictures
    chosen = [picture for picture in pictures if picture.name == name or not name]
    for picture in chosen[-1:] if name else chosen:
        pictures.remove(picture)
    return len(pictures)


# Back and forth


def undo(peer: Dispatcher, *, session_id: str, count: int = 0) -> int:
    """Undo the last exchanges."""
    with _changing(peer, session_id) as conversation:
        return as_rpc(lambda: conversation.undo(count or 1))


def redo(peer: Dispatcher, *, session_id: str) -> int:
    """Restore what an undo removed."""
    with _changing(peer, session_id) as conversation:
        return as_rpc(conversation.redo)


def retry(peer: Dispatcher, *, session_id: str) -> RetriedPrompt:
    """Ask the last question again."""
    with _changing(peer, session_id) as conversation:
        text = as_rpc(conversation.undo_last_prompt)
    _live(peer, session_id).submit(text)
    return {"status": "streaming", "text": text}


def branch(
    peer: Dispatcher,
    *,
    session_id: str,
    name: str = "",
    message_id: int = 0,
    stay: bool = False,
    keep_images: bool = False,
) -> BranchView:
    """Continue in a new conversation, from here or from a prompt."""
    live = _live(peer, session_id)
    parent = live.conversation.session_id
    opened = open_branch(
        peer,
        live,
        name,
        message_id,
        stays=stay,
        keeps_images=keep_images,
    )
    return {
        "session_id": opened.session_id,
        "stored_session_id": opened.stored_session_id,
        "parent": parent,
    }


def prompts(peer: Dispatcher, *, session_id: str) -> list[PromptSummary]:
    """List the user's messages."""
    result = _live(peer, session_id).conversation.prompts()
    return [PromptSummary(prompt.message_id, prompt.text) for prompt in result]


def versions(peer: Dispatcher, *, session_id: str) -> list[PromptVersionsView]:
    """The prompts that have other versions in branches."""
    conversation = _live(peer, session_id).conversation
    if not conversation.exists:
        return []
    found = prompt_versions(conversation.db, conversation.session_id)
    return [PromptVersionsView(*versions) for versions in found]


def todo(peer: Dispatcher, *, session_id: str) -> list[TodoStep]:
    """The list of steps that the agent keeps."""
    items = _live(peer, session_id).conversation.todo_items()
    return [TodoStep(item.text, item.status) for item in items]


def rewind(peer: Dispatcher, *, session_id: str, message_id: int) -> str:
    """Undo a message and everything after it."""
    with _changing(peer, session_id) as conversation:
        return as_rpc(lambda: conversation.rewind_to(message_id))


def tree(peer: Dispatcher, *, session_id: str) -> list[RelatedSession]:
    """The conversation and its branches."""
    live = _live(peer, session_id)
    rows = as_rpc(live.conversation.related_sessions)
    return [_related(row) for row in rows]


def _related(session: SessionRow) -> RelatedSession:
    return RelatedSession(
        id=session.id,
        title=session.title,
        parent_session_id=session.parent_session_id,
        started_at=session.started_at,
        message_count=session.message_count,
        end_reason=session.end_reason,
    )


def compress(peer: Dispatcher, *, session_id: str, focus_topic: str = "") -> CompressionView:
    """Summarize older messages."""
    with _changing(peer, session_id) as conversation:
        result = as_rpc(lambda: conversation.compress(focus_topic))
    return {"before": result.before, "after": result.after, "summary": result.summary}


def save(
    peer: Dispatcher, *, session_id: str, path: str = "", within_permissions: bool = False
) -> str:
    """Write the conversation to a file."""
    conversation = _live(peer, session_id).conversation
    return str(as_rpc(lambda: conversation.save(path, within_folder=within_permissions)))


def permissions(peer: Dispatcher, *, session_id: str, mode: str = "") -> PermissionView:
    """Show or change the permission mode."""
    live = _live(peer, session_id)
    if mode:
        as_rpc(lambda: live.conversation.set_mode(mode))
        live.emit(live.info())
    sandbox = find_sandbox()
    return {
        "mode": live.conversation.mode,
        "sandbox": sandbox.name,
        "problem": sandbox.problem,
        "rules": live.conversation.permission_rules(),
    }


# Answers


def approve(
    peer: Dispatcher,
    *,
    session_id: str,
    choice: str,
    request_id: str = "",
    rule: str = "",
    reason: str = "",
) -> bool:
    """Answer an approval prompt."""
    if choice not in CHOICES:
        raise RpcError(INVALID_PARAMS, f"`choice` must be one of {', '.join(CHOICES)}")
    rules = as_rpc(lambda: parse_rules(rule))
    answer = ApprovalAnswer(choice, rules, reason)
    return _answer(peer, session_id, request_id, str(answer))


def clarify(peer: Dispatcher, *, session_id: str, answer: str, request_id: str = "") -> bool:
    """Answer a question of the agent."""
    return _answer(peer, session_id, request_id, answer)


def secret(peer: Dispatcher, *, session_id: str, value: str, request_id: str = "") -> bool:
    """Provide a requested secret."""
    return _answer(peer, session_id, request_id, value)


def _answer(peer: Dispatcher, session_id: str, request_id: str, text: str) -> bool:
    return _live(peer, session_id).questions.answer(request_id, text)


# Commands


def catalog(_peer: Dispatcher, *, cwd: str = "", surface: str = "") -> list[CommandSummary]:
    """List the slash commands of a `surface`: screen, page or editor."""
    commands = slash_commands.listed_commands(surface_of(surface), folder_of(cwd))
    return [_command_summary(command) for command in commands]


def _command_summary(command: slash_commands.SlashCommand) -> CommandSummary:
    return CommandSummary(
        name=f"/{command.name}",
        hint=command.hint,
        help=command.help,
        aliases=[f"/{alias}" for alias in command.aliases],
        while_busy=command.while_busy,
        choices=list(command.choices),
    )


def dispatch(
    peer: Dispatcher, *, session_id: str, name: str, arg: str = "", surface: str = ""
) -> CommandResult:
    """Run a slash command."""
    live = _live(peer, session_id)
    name = name.removeprefix("/").lower()
    command = as_rpc(
        lambda: slash_commands.find(name, slash_commands.project_folder(live.conversation))
    )
    front_end = surface_of(surface)
    as_rpc(lambda: slash_commands.require_surface(command, front_end))
    switched = switch_by_command(peer, live, command.name, arg)
    if switched is not None:
        session_id = switched.opened.session_id
        return CommandResult("exec", switched.output, changed=True, session_id=session_id)
    line = f"/{name} {arg}".rstrip()
    if command.while_busy:
        outcome = as_rpc(lambda: slash_commands.run(live.conversation, line, front_end))
        is_changed = False
    else:
        outcome, is_changed = _changed(peer, live, line, front_end)
    if not live.follow(outcome, peer):
        raise RpcError(NOTHING_TO_DO, f"nothing to /{command.name}")
    live.emit(live.info())
    kind, message = _effect(outcome)
    return CommandResult(kind, outcome.text, is_changed, live.id, message)


def _changed(
    peer: Dispatcher, live: LiveSession, line: str, surface: Surface
) -> tuple[slash_commands.CommandOutcome, bool]:
    """Run a command; whether it changed the history. Other clients are notified."""
    with live.changing() as conversation:
        before = [message["id"] for message in live.messages()]
        outcome = as_rpc(lambda: slash_commands.run(conversation, line, surface))
        is_changed = before != [message["id"] for message in live.messages()]
    if is_changed:
        live.emit(SessionChanged(), but=peer)
    return outcome, is_changed


def _effect(outcome: slash_commands.CommandOutcome) -> tuple[str, str]:
    """What a client does after a command, and the message for it."""
    if outcome.say:
        return "send", outcome.say
    if outcome.fill:
        return "prefill", outcome.fill
    if outcome.copy:
        return "copy", outcome.copy
    return ("leave", "") if outcome.leave else ("exec", "")


def _live(peer: Dispatcher, session_id: str) -> LiveSession:
    return peer.hub.live(session_id)


@contextlib.contextmanager
def _changing(peer: Dispatcher, session_id: str) -> Iterator[Conversation]:
    """The conversation for an exclusive change; other clients are notified."""
    live = _live(peer, session_id)
    with live.changing() as conversation:
        yield conversation
    live.emit(SessionChanged(), but=peer)
    live.emit(live.info())
