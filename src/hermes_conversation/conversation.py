"""A conversation as every front end uses it: its agent, its history, and what changes it.

How a change is requested and how it is displayed is the front end's part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from hermes_agent.events import Failed, TurnStarted
from hermes_agent.providers import selection
from hermes_conversation import agent_factory, attachments, export
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hermes_agent.agent import AIAgent
    from hermes_agent.context.compaction import Compacted
    from hermes_agent.events import Event
    from hermes_agent.tools.base import Asks
    from hermes_conversation.agent_factory import AgentBundle, ConversationOptions
    from hermes_conversation.attachments import Picture
    from hermes_conversation.history_scope import OwnHistory
    from hermes_state import SessionDB

NOTHING_SAID = "This conversation has no messages yet."


@runtime_checkable
class SecretPrompter(Protocol):
    """Somebody who can be asked for a key."""

    def secret(self, prompt: str, name: str) -> str:
        """What was typed, unseen; empty when nothing was."""


class UserPrompt(NamedTuple):
    """Something the user said, to which one can go back."""

    message_id: int
    content: Any

    @property
    def text(self) -> str:
        """The words of it."""
        return attachments.words_of(self.content)


class Conversation:
    """One conversation at a time, of one store."""

    def __init__(self, db: SessionDB, asks: Asks, wish: ConversationOptions) -> None:
        self.db = db
        self._asks = asks
        self._wish = wish
        self._talk: AgentBundle = agent_factory.build_agent(db, asks, wish)
        self._title = ""  # for a conversation that is not in the store yet
        self.pictures: list[Picture] = []  # for what is said next

    @property
    def agent(self) -> AIAgent:
        """The agent of the conversation."""
        return self._talk.agent

    @property
    def session_id(self) -> str:
        """The conversation's id."""
        return self.agent.session_id

    @property
    def wish(self) -> ConversationOptions:
        """What was asked for when it was begun."""
        return self._wish

    @property
    def exists(self) -> bool:
        """Whether anything was said yet."""
        return self.db.get_session(self.session_id) is not None

    @property
    def history(self) -> SessionDB | OwnHistory:
        """What may be searched from here."""
        return agent_factory.history_for(self.db, self._wish)

    @property
    def talk(self) -> AgentBundle:
        """The conversation put together: its tools, skills, memory."""
        return self._talk

    def say(self, text: str, media: Sequence[str] = (), **fields: Any) -> Iterator[Event]:
        """Say something, with the pictures attached before; the events of the turn.

        *media* are references to kept pictures. *fields* are stored with it: its identity,
        say, or its id on a platform.
        """
        content = attachments.with_pictures(text, self.pictures, media)
        self.pictures = []
        for event in self.agent.turn(content, **fields):
            if self._title and isinstance(event, TurnStarted):
                self.db.set_session_title(self.session_id, self._title)
                self._title = ""
            yield event

    def go_on(self) -> Iterator[Event]:
        """Go on with a turn that was broken off: nothing new is said."""
        return self.agent.go_on()

    def attach(self, path: Path) -> Picture:
        """Let a picture go along with what is said next."""
        self.pictures.append(attachments.read(self.agent.cwd / path))
        return self.pictures[-1]

    def move_to(self, folder: Path) -> Path:
        """Work in another folder from now on."""
        target = (self.agent.cwd / folder).resolve()
        if not target.is_dir():
            raise UsageError(f"{target} is not a directory.")
        self.agent.cwd = target
        if self.exists:
            self.db.update_session_cwd(self.session_id, str(target))
        return target

    # Which conversation

    def new(self, reason: str = "new_session") -> str:
        """End this conversation and begin another; its id."""
        self._leave(reason)
        self._sit_down(None)
        return self.session_id

    def resume(self, text: str) -> str:
        """Take up another conversation: an id, the beginning of one, a title, or `last`."""
        found = self.db.resolve_resume_session_id(self.db.resolve(text))
        if found == self.session_id:
            return found
        self._leave("resumed_other")
        self._sit_down(found)
        return found

    def branch(self, title: str = "", before_message: int = 0) -> str:
        """Go on in a second conversation that begins as this one; its id.

        With *before_message* it ends before that one.
        """
        found = self.branched(title, before_message)
        self._leave("branched")
        self._sit_down(found)
        return found

    def branched(self, title: str = "", before_message: int = 0) -> str:
        """A second conversation that begins as this one; this one stays before one."""
        self._require()
        through = before_message - 1 if before_message else None
        return self.db.branch_session(
            self.session_id, title=title or None, through_message_id=through
        )

    def use_model(self, name: str) -> str:
        """Let another model answer from now on; its name. A key that is missing is asked for."""
        self._make_sure_of_key(name)
        wish = self._wish._replace(model=name)
        talk = agent_factory.build_agent(
            self.db, self._asks, wish._replace(session_id=self.session_id)
        )
        self._talk.close()
        self._wish, self._talk = wish, talk
        if self.exists:
            self.db.update_session_model(self.session_id, self.agent.model)
        return self.agent.model

    def _make_sure_of_key(self, name: str) -> None:
        setting = self.lacks_key(name)
        if not setting or not isinstance(self._asks, SecretPrompter):
            return
        key = self._asks.secret(f"API key for {name} (hidden)", setting)
        if not key:
            raise UsageError(f"{name} requires an API key; nothing was changed.")
        ConfigFile.of_home().set(setting, key)

    def lacks_key(self, name: str) -> str:
        """The setting of the key that a model needs and that is not there; empty if none is."""
        choice = agent_factory.chain(ConfigFile.of_home().settings(), name)[0]
        setting = selection.key_name(choice.api, choice.base_url)
        return setting if setting.startswith("keys.") and not choice.key else ""

    def stop(self) -> None:
        """Stop everything that runs for the conversation; its row stays as it is."""
        self._talk.close()

    def leave(self, reason: str) -> None:
        """Get up: whatever runs here is stopped, the row is ended unless a turn runs elsewhere."""
        self._leave(reason)

    def _leave(self, reason: str) -> None:
        self._talk.close()
        if self.exists and not self.db.is_turn_elsewhere(self.session_id):
            self.db.end_session(self.session_id, reason)

    def _sit_down(self, session_id: str | None) -> None:
        self._talk = agent_factory.build_agent(
            self.db, self._asks, self._wish._replace(session_id=session_id)
        )

    # What was said

    def undo(self, exchanges: int = 1) -> int:
        """Take back the last exchanges; how many rows."""
        self._require()
        self.agent.history_was_changed()
        return len(self.db.undo(self.session_id, exchanges))

    def redo(self) -> int:
        """Bring back what the last undo took; how many rows."""
        self._require()
        self.agent.history_was_changed()
        return len(self.db.redo(self.session_id))

    def prompts(self) -> list[UserPrompt]:
        """What the user has said, the latest last."""
        if not self.exists:
            return []
        rows, prompts = self.db.get_messages(self.session_id), self.db.prompt_ids(self.session_id)
        return [UserPrompt(row["id"], row["content"]) for row in rows if row["id"] in prompts]

    def back_to(self, message_id: int) -> str:
        """Take back something the user said and all that followed; the words.

        Pictures that came with it go along with what is said next.
        """
        self._require()
        target = next((one for one in self.prompts() if one.message_id == message_id), None)
        if target is None:
            raise UsageError("The message is not one of your prompts in this conversation.")
        self.agent.history_was_changed()
        self.db.rewind_to_message(self.session_id, message_id)
        self.pictures = attachments.pictures_of(target.content)
        return target.text

    def take_back_last(self) -> str:
        """Take back the last exchange, to ask again; what was asked."""
        self._require()
        prompts = self.prompts()
        if not prompts:
            raise UsageError(NOTHING_SAID)
        return self.back_to(prompts[-1].message_id)

    def family(self) -> list[dict[str, Any]]:
        """This conversation, what it branched off, and what branched off it; oldest first."""
        self._require()
        rows = map(self.db.get_session, self.db.relatives_of(self.session_id))
        return sorted((row for row in rows if row), key=lambda row: row["started_at"] or 0)

    def save(self, path: str = "") -> Path:
        """Write the conversation to a file: Markdown, or HTML by its ending; which file."""
        self._require()
        return export.save(self.db, self.session_id, self.agent.cwd, path)

    def compress(self, focus: str = "") -> Compacted:
        """Sum up what was said before, so that there is room to go on."""
        self._require()
        self.agent.history_was_changed()
        result = self.agent.compress(focus)
        if isinstance(result, Failed):
            raise UsageError(str(result))
        return result

    def title(self, text: str) -> str:
        """Give the conversation a title, also before it begins; with no text, the one it has."""
        if not self.exists:
            self._title = text or self._title
            return self._title
        if text:
            self.db.set_session_title(self.session_id, text)
        return self.db.get_session_title(self.session_id) or ""

    def row(self) -> dict[str, Any]:
        """What the store knows about the conversation."""
        return self.db.get_session(self.session_id) or {}

    def _require(self) -> None:
        if not self.exists:
            raise UsageError(NOTHING_SAID)
