"""The conversation facade of every front end: the agent, its history, and their changes.

Front ends decide how a change is requested and displayed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.context.window import max_result_characters
from hermes_agent.events import (
    Attached,
    Failed,
    FailureKind,
    Notice,
    Reply,
    TurnEnd,
    TurnFinished,
    TurnStarted,
)
from hermes_agent.messages import ANONYMOUS, ModelRequest, PromptIdentity, Usage
from hermes_agent.permissions.approvals import parse_mode
from hermes_agent.providers import selection
from hermes_agent.tools.base import ToolError
from hermes_agent.tools.prompter import SecretPrompter
from hermes_agent.tools.todo import current_items
from hermes_conversation import agent_factory, attachments, export
from hermes_conversation.attachments import MentionReader, MentionResult
from hermes_conversation.file_history import FileHistory
from hermes_conversation.file_index import FileIndex
from hermes_conversation.history_scope import ConversationHistory, ScopedHistory
from hermes_conversation.input_lines import run_shell_line
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.ids import new_session_id
from hermes_core.isolate import attempt
from hermes_core.messages import sanitize_title
from hermes_core.roles import Right, may

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from hermes_agent.agent import AIAgent
    from hermes_agent.context.compaction import CompactionResult
    from hermes_agent.events import Event
    from hermes_agent.memory.facts import AgentMemory
    from hermes_agent.permissions.approvals import Mode
    from hermes_agent.tools.prompter import Prompter
    from hermes_agent.tools.todo import TodoItem
    from hermes_agent.turn import AnswerHook
    from hermes_conversation.agent_factory import AgentBundle, ConversationOptions
    from hermes_conversation.attachments import AttachedText, Picture
    from hermes_conversation.input_lines import ShellOutput
    from hermes_state.sessions.records import SessionRow
    from hermes_state.store import SessionDB

    Pictures = Sequence[Picture]


TASK: Final = (
    "Write a title for this conversation: three to six words that name its subject, in the "
    "language of the user, without quotes and without a full stop. Answer with the title only."
)
PROMPT_CHARACTERS: Final = 2_000
ANSWER_CHARACTERS: Final = 1_000
MAX_CHARACTERS: Final = 60
MAX_TOKENS: Final = 1_000  # models that think first need more than the title itself


class TitleWriter:
    """Writes the title of one conversation, once."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self.on_title: Callable[[], object] | None = None  # called when there is a title
        self._thread: threading.Thread | None = None
        self._tried = ""  # the session that was tried last

    def start(self, agent: AIAgent, prompt: str, finished: TurnFinished) -> None:
        """Write a title in the background, unless the conversation has one or was tried."""
        session_id, answer = agent.session_id, finished.text
        if self._tried == session_id or finished.end is not TurnEnd.COMPLETE:
            return
        if not prompt.strip() or agent.is_demo:
            return
        self._tried = session_id
        is_wanted = ConfigFile.of_home().settings().get_bool("agent.automatic_titles")
        if not is_wanted or self._db.titles.get_session_title(session_id):
            return

        def write() -> None:
            attempt("write a title", lambda: self._write(agent, session_id, prompt, answer))

        self._thread = threading.Thread(target=write, name="hermes-title", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the title that is being written."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _write(self, agent: AIAgent, session_id: str, prompt: str, answer: str) -> None:
        conversation = (
            f"<user>\n{prompt[:PROMPT_CHARACTERS]}\n</user>\n"
            f"<assistant>\n{answer[:ANSWER_CHARACTERS]}\n</assistant>\n\n{TASK}"
        )
        request = ModelRequest([{"role": "user", "content": conversation}], [], MAX_TOKENS)
        reply = agent.complete(request)
        title = clean_title(reply.text) if isinstance(reply, Reply) else ""
        if not title or self._db.titles.get_session_title(session_id):
            return
        title = self._db.titles.get_next_title_in_lineage(title)
        is_set = self._db.titles.set_session_title(session_id, title, source="llm")
        if is_set and self.on_title is not None:
            self.on_title()


def clean_title(text: str) -> str:
    """The title in an answer of a model; empty if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    line = lines[-1].removeprefix("Title:").strip(" \t#*\"'`“”„«».")
    if len(line) > MAX_CHARACTERS:
        line = line[:MAX_CHARACTERS].rsplit(" ", 1)[0]
    return sanitize_title(line) or ""


NO_MESSAGES = "This conversation has no messages yet."


class UserPrompt(NamedTuple):
    """A prompt of the user, to which the conversation can be rewound."""

    message_id: int
    content: Any

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return attachments.text_of(self.content)


class Conversation:
    """One conversation at a time, in one store."""

    def __init__(self, db: SessionDB, asks: Prompter, options: ConversationOptions) -> None:
        self.db = db
        self._prompter = asks
        self._options = options
        self._bundle: AgentBundle = agent_factory.build_agent(db, asks, options)
        self._title = ""  # applied when the conversation is stored
        self.pictures: list[Picture] = []  # for the next prompt
        self.titles = TitleWriter(db)
        self.shell_outputs: list[AttachedText] = []  # for the next prompt
        self._files: FileIndex | None = None
        self._own_id = ""  # the last session ID that is known not to be imported
        self.on_review: Callable[[str], object] | None = None  # receives what was remembered

    @property
    def agent(self) -> AIAgent:
        """The agent of the conversation."""
        return self._bundle.agent

    @property
    def session_id(self) -> str:
        """The session ID."""
        return self.agent.session_id

    @property
    def options(self) -> ConversationOptions:
        """The options the conversation was started with."""
        return self._options

    @property
    def _current_options(self) -> ConversationOptions:
        return self._options._replace(mode=self.mode, cwd=self.agent.cwd)

    @property
    def exists(self) -> bool:
        """Whether the conversation is stored: it has at least one message."""
        return self.db.sessions.find(self.session_id) is not None

    @property
    def history(self) -> ConversationHistory:
        """The history that may be searched from this conversation."""
        return agent_factory.searchable_history(self.db, self._options)

    @property
    def memory(self) -> AgentMemory | None:
        """The notes that this conversation may use."""
        return agent_factory.conversation_memory(self.db, self._options)

    @property
    def bundle(self) -> AgentBundle:
        """The agent with its tools and extensions."""
        return self._bundle

    def send(
        self,
        text: str,
        media: Sequence[str] = (),
        pictures: Pictures | None = None,
        identity: PromptIdentity = ANONYMOUS,
        on_answer: AnswerHook | None = None,
    ) -> Iterator[Event]:
        """Send a prompt with *pictures*, or the attached ones; yield the events of the turn.

        *media* are references to stored pictures; *on_answer* is that of `AIAgent.turn`.
        """
        own, is_started = self.take_pictures() if pictures is None else pictures, False
        try:
            for event in self._with_hook_notices(self._send(text, media, own, identity, on_answer)):
                if isinstance(event, TurnStarted):
                    is_started = True
                    self._note_start()
                yield event
        finally:
            if not is_started:  # for the next attempt
                self.pictures[:0] = own

    def _send(
        self,
        text: str,
        media: Sequence[str],
        own: Pictures,
        identity: PromptIdentity,
        on_answer: AnswerHook | None,
    ) -> Iterator[Event]:
        if (failure := self._hook_refusal(text)) is not None:
            yield TurnFinished(TurnEnd.FAILED, "", Usage(), str(failure), failure)
            return
        mentioned = self._mentioned(text)
        texts = [*self.shell_outputs, *mentioned.texts]
        pictures = [*own, *mentioned.pictures]
        content = attachments.with_attachments(text, texts, pictures, media)
        labels = (*(item.label for item in texts), *(picture.label for picture in pictures))
        if labels:
            yield Attached(labels)
        yield from map(Notice, mentioned.notices)
        self._continue_imported()
        self.agent.on_review = self.on_review
        for event in self.agent.turn(content, identity, on_answer):
            if isinstance(event, TurnFinished) and self._options.has_automatic_title:
                self.titles.start(self.agent, text, event)
            yield event

    def _note_start(self) -> None:
        """The message is stored with its attachments, and a title can be set."""
        self.shell_outputs = []
        if self._title:
            self.db.titles.set_session_title(self.session_id, self._title)
            self._title = ""

    def _mentioned(self, text: str) -> MentionResult:
        """The files that a prompt mentions, as far as the role of the conversation may read."""
        role, cwd, is_hidden = self._options.role, self.agent.cwd, self._bundle.approvals.is_hidden
        if "@" not in text or not may(role, Right.FILES):
            return MentionResult()
        is_free = may(role, Right.ALL_FILES)
        reader = MentionReader(
            cwd,
            lambda path: is_hidden(path, cwd) or not (is_free or path.is_relative_to(cwd)),
            max_result_characters(self.agent.window) * 2,
        )
        return reader.read(text)

    @property
    def file_index(self) -> FileIndex:
        """The files of the working folder, for completion."""
        if self._files is None or self._files.folder != self.agent.cwd:
            self._files = FileIndex(self.agent.cwd)
        return self._files

    def run_shell(self, command: str) -> ShellOutput:
        """Run a shell line of the user; the next message contains its output."""
        output = run_shell_line(command, self.agent.cwd)
        self.shell_outputs.append(output.attachment())
        return output

    def remember(self, text: str) -> str:
        """Add an entry to the memory of the agent; the path of the file."""
        memory = self.memory
        if memory is None:
            raise UsageError("Memory is not available in a chat that others read.")
        if not text.strip():
            raise UsageError("Nothing to remember. Example: #deploy with make release")
        try:
            memory.add("memory", text.strip())
        except ToolError as error:
            raise UsageError(str(error)) from error
        return str(memory.path("memory"))

    def _hook_refusal(self, text: str) -> Failed | None:
        """The refusal of a prompt by a shell hook; such a prompt is neither stored nor sent."""
        hooks = self._bundle.shell_hooks
        if hooks is None:
            return None
        reason = hooks.submit(self.session_id, text, is_new=not self.exists)
        return (
            Failed(FailureKind.REFUSED, f"A hook refused this prompt: {reason}") if reason else None
        )

    def _with_hook_notices(self, events: Iterator[Event]) -> Iterator[Event]:
        """The events of a turn, with a notice for each shell hook that failed meanwhile."""
        for event in events:
            if self._bundle.shell_hooks is not None:
                yield from map(Notice, self._bundle.shell_hooks.pop_notices())
            yield event

    def continue_turn(self, on_answer: AnswerHook | None = None) -> Iterator[Event]:
        """Continue an interrupted turn without a new prompt."""
        return self._with_hook_notices(self.agent.resume(on_answer))

    def attach(self, path: Path) -> Picture:
        """Attach a picture to the next prompt."""
        self.pictures.append(attachments.read(self.agent.cwd / path))
        return self.pictures[-1]

    def take_pictures(self, paths: Iterable[str] = ()) -> list[Picture]:
        """The attached pictures and those of *paths*, for a prompt that owns them."""
        found = self.pictures + [attachments.read(self.agent.cwd / path) for path in paths]
        self.pictures = []
        return found

    def move_to(self, folder: Path) -> Path:
        """Change the working folder."""
        target = (self.agent.cwd / folder).resolve()
        if not target.is_dir():
            raise UsageError(f"{target} is not a folder.")
        self.agent.cwd = target
        if self.exists and not self._is_imported:
            self.db.sessions.update_session_cwd(self.session_id, str(target))
        return target

    def todo_items(self) -> list[TodoItem]:
        """The list of steps that the agent keeps."""
        return current_items(self.agent.conversation_store.everything()) if self.exists else []

    # Permissions

    @property
    def mode(self) -> Mode:
        """The permission mode: plan, workspace or full."""
        return self._bundle.approvals.mode

    def set_mode(self, name: str) -> Mode:
        """Change the mode of this conversation, also while a turn runs."""
        mode = parse_mode(name)
        self._options = self._options._replace(mode=mode)
        self._bundle.approvals.mode = mode
        return mode

    def permission_rules(self) -> dict[str, list[str]]:
        """The rules of this conversation and those that are kept."""
        grants = self._bundle.approvals.grants
        kept = grants.always()
        return {"session": sorted(grants.rules(self.session_id) - set(kept)), "always": kept}

    def remove_rule(self, rule: str) -> bool:
        """Remove a permission rule; whether it existed."""
        grants = self._bundle.approvals.grants
        is_removed = grants.revoke_in(self.session_id, rule)
        return grants.revoke(rule) or is_removed

    def reload(self) -> None:
        """Build the agent again, with the settings and the files as they are now."""
        self._rebuild(self._current_options)

    # Switching conversations

    def new(self) -> str:
        """End this conversation and start a new one; return its ID."""
        return self._switch_to(new_session_id(self.db.clock), "new_session")

    def continue_with_new(self) -> str:
        """Start a new conversation after this one was handed off; return its ID."""
        following = new_session_id(self.db.clock)
        self.db.sessions.switch(self.session_id, following, "handoff", ends_old=False)
        return self._switch_to(following, "handoff")

    def resume(self, text: str) -> str:
        """Switch to another conversation: a session ID, a title, a prefix of either, or `last`."""
        result = self.db.titles.resolve_resume_session_id(self.db.lookup.resolve(text))
        if isinstance(self.history, ScopedHistory) and result not in self.history.ids():
            raise UsageError(f"No conversation of this chat matches {text!r}.")
        if result == self.session_id:
            return result
        return self._switch_to(result, "resumed_other")

    def branch(self, title: str = "", before_message: int = 0) -> str:
        """Switch to a copy of this conversation; return its ID.

        With *before_message* the copy ends before that message.
        """
        branch = self.create_branch(title, before_message, is_switched=True)
        self._bundle.close()
        self._open(branch)
        return branch

    def create_branch(
        self,
        title: str = "",
        before_message: int = 0,
        *,
        is_switched: bool = False,
        is_used: bool = False,
    ) -> str:
        """Create a copy of this conversation; return its ID.

        With *is_switched* the front end continues with it; this one then ends if it was written
        to here, unless another client of the front end has it open: *is_used*.
        """
        self._require()
        before = self.db.messages.repeated(self.session_id).last_row(before_message)
        return self.db.edits.branch(
            self.session_id,
            title=title or None,
            through_message_id=before - 1 if before else None,
            is_switched=is_switched,
            end_parent=not is_used and self.db.sessions.may_end(self.session_id),
            source=self._options.source if self._is_imported else None,
        )

    def use_model(self, name: str) -> str:
        """Switch to another model; return its name. Prompts for a missing API key.

        Raises UsageError with suggestions for a model that its endpoint does not list.
        """
        name = selection.qualified_name(name, self._options.model)
        self._require_key(name)
        self._require_listed(name)
        self._rebuild(self._current_options._replace(model=name))
        if self.exists and not self._is_imported:
            self.db.sessions.update_session_model(self.session_id, self.agent.model)
        return self.agent.model

    def _require_listed(self, name: str) -> None:
        choice = agent_factory.model_chain(ConfigFile.of_home().settings(), name)[0]
        from hermes_agent.providers.catalog import (  # noqa: PLC0415 - needs HTTP, for this only
            ModelCatalog,
            unlisted_problem,
        )

        problem = unlisted_problem(choice, name, ModelCatalog())
        if problem:
            raise UsageError(problem)

    def needs_other_agent(self, asked: ConversationOptions) -> bool:
        """Whether the given options of *asked* need another agent, which no turn survives."""
        own = self._current_options
        return self._with_given(asked)._replace(mode=own.mode, allow=own.allow) != own

    def use(self, asked: ConversationOptions) -> None:
        """Apply all given options of *asked*; nothing changes if one of them cannot be applied."""
        wanted = self._with_given(asked)
        if self.needs_other_agent(asked):
            if wanted.model != self._options.model:
                self._require_usable(wanted.model)
            self._rebuild(wanted)
            return
        self._options = wanted
        self._bundle.approvals.mode = wanted.mode or self.mode
        self._bundle.approvals.grants.allow_in(self.session_id, asked.allow)

    def _with_given(self, asked: ConversationOptions) -> ConversationOptions:
        """The options as they are now, with those that *asked* gives; rules are added."""
        own = self._current_options
        is_used = asked.model in ("", own.model, self.agent.model)
        return own._replace(
            model=own.model if is_used else selection.qualified_name(asked.model, own.model),
            cwd=agent_factory.working_folder(asked.cwd or own.cwd),
            mode=asked.mode or own.mode,
            allow=tuple(dict.fromkeys((*own.allow, *asked.allow))),
            mcp_servers=asked.mcp_servers or own.mcp_servers,
            max_steps=asked.max_steps or own.max_steps,
            max_output=asked.max_output or own.max_output,
            effort=asked.effort or own.effort,
        )

    def _require_usable(self, name: str) -> None:
        """Raise UsageError for a model without its API key, or that its endpoint does not list."""
        setting = self.missing_key_setting(name)
        if setting:
            raise UsageError(
                f"{name} requires an API key; nothing was changed. "
                f"Run `hermes config set {setting}`, or /model {name} in the conversation."
            )
        self._require_listed(name)

    def _rebuild(self, options: ConversationOptions) -> None:
        """Replace the agent by one with other options; nothing changes if that fails."""
        bundle = agent_factory.build_agent(
            self.db, self._prompter, options._replace(session_id=self.session_id)
        )
        self._bundle.close()
        self._options, self._bundle = options, bundle

    def _require_key(self, name: str) -> None:
        setting = self.missing_key_setting(name)
        if not setting or not isinstance(self._prompter, SecretPrompter):
            return
        key = self._prompter.secret(f"API key for {name} (hidden)", setting)
        if not key:
            raise UsageError(f"{name} requires an API key; nothing was changed.")
        ConfigFile.of_home().set(setting, key)

    def missing_key_setting(self, name: str) -> str:
        """The setting of the API key that a model needs and that is not set; empty if none."""
        choice = agent_factory.model_chain(ConfigFile.of_home().settings(), name)[0]
        return selection.missing_key_setting(choice)

    def stop(self) -> None:
        """Stop everything that runs for the conversation; its row is not changed."""
        self._bundle.close()

    def leave(self, reason: str, new_session_id: str | None = None) -> None:
        """Stop everything; end the row if it was written to here and is not used elsewhere."""
        self._bundle.close()
        self.db.sessions.leave(self.session_id, reason, new_session_id=new_session_id)

    def _switch_to(self, session_id: str, reason: str) -> str:
        """Continue with another conversation, which may be new; its row does not change yet."""
        self.leave(reason, session_id)
        self._open(session_id)
        return session_id

    def _open(self, session_id: str) -> None:
        self._bundle = agent_factory.build_agent(
            self.db, self._prompter, self._options._replace(session_id=session_id)
        )

    # Changing the history

    def undo(self, exchanges: int = 1) -> int:
        """Undo the last exchanges; return the number of rows."""
        self._require()
        if not self.db.edits.prompt_ids(self.session_id):
            return 0
        self._require_open()
        self.agent.history_was_changed()
        return len(self.db.edits.undo(self.session_id, exchanges))

    def redo(self) -> int:
        """Restore what the last undo removed; return the number of rows."""
        self._require()
        if not self.db.edits.can_redo(self.session_id):
            return 0
        self._require_open()
        self.agent.history_was_changed()
        return len(self.db.edits.redo(self.session_id))

    def prompts(self) -> list[UserPrompt]:
        """The prompts of the user, oldest first."""
        if not self.exists:
            return []
        rows = self.db.messages.rows(self.session_id)
        prompts = self.db.edits.prompt_ids(self.session_id)
        first_row = self.db.messages.repeated(self.session_id).first_row
        return [UserPrompt(first_row(row.id), row.content) for row in rows if row.id in prompts]

    def rewind_to(self, message_id: int) -> str:
        """Remove a prompt and everything after it; return its text.

        The pictures of the prompt are attached to the next one.
        """
        numbers = [prompt.message_id for prompt in self.prompts()]
        if message_id not in numbers:
            raise UsageError("The message is not one of your prompts in this conversation.")
        self._require_open()
        target = self.prompts()[numbers.index(message_id)]
        self.agent.history_was_changed()
        self.db.edits.rewind(self.session_id, target.message_id)
        self.pictures = attachments.pictures_of(target.content)
        return target.text

    def undo_last_prompt(self) -> str:
        """Remove the last exchange, to ask again; return the prompt."""
        self._require()
        prompts = self.prompts()
        if not prompts:
            raise UsageError(NO_MESSAGES)
        return self.rewind_to(prompts[-1].message_id)

    @property
    def files(self) -> FileHistory:
        """What this conversation changed in its folders."""
        return FileHistory(self.db, self.session_id)

    def related_sessions(self) -> list[SessionRow]:
        """This conversation, its ancestors and its branches, oldest first."""
        self._require()
        rows = map(self.db.sessions.find, self.db.portable.relatives_of(self.session_id))
        return sorted((row for row in rows if row), key=lambda row: row.started_at)

    def save(self, path: str = "", *, within_folder: bool = True) -> Path:
        """Write the conversation to a file, as Markdown or HTML by its suffix; return the path."""
        self._require()
        folder = self.agent.cwd
        return export.save(self.db, self.session_id, folder, path, within_folder=within_folder)

    def compress(self, focus: str = "") -> CompactionResult:
        """Summarize older messages to free up context."""
        self._require()
        self._continue_imported()
        self.agent.history_was_changed()
        result = self.agent.compress(focus)
        if isinstance(result, Failed):
            raise UsageError(str(result))
        if result.summary:
            self._require_open()
        return result

    def title(self, text: str) -> str:
        """Set the title, also before the first message; without *text*, return the current one."""
        if not self.exists:
            self._title = text or self._title
            return self._title
        if text:
            self.db.titles.set_session_title(self.session_id, text)
        return self.db.titles.get_session_title(self.session_id) or ""

    def row(self) -> SessionRow | None:
        """The stored row of the conversation; None before the first message."""
        return self.db.sessions.find(self.session_id)

    def _require(self) -> None:
        if not self.exists:
            raise UsageError(NO_MESSAGES)

    def _require_open(self) -> None:
        """Reopen a conversation that has ended, before its history changes."""
        self._require()
        self._continue_imported()
        self.db.sessions.reopen_session(self.session_id)

    @property
    def _is_imported(self) -> bool:
        """Whether this is a conversation of another agent, which is never changed here."""
        if self.session_id != self._own_id and not self.db.imports.is_foreign(self.session_id):
            self._own_id = self.session_id
        return self.session_id != self._own_id

    def _continue_imported(self) -> None:
        """Continue a conversation of another agent in a branch, from its first change on."""
        if self._is_imported:
            cwd, before = self.agent.cwd, self._bundle
            branch = self.db.imports.continue_here(self.session_id, self._options.source)
            self.db.sessions.update_session_cwd(branch, str(cwd))
            self._options = self._current_options
            self._open(branch)
            before.close()
