"""Automatic titles: after the first answer, the model writes one in the background.

A title of the user is never replaced (`set_session_title` ranks them). The request is counted
with the conversation; if it fails, the conversation keeps no title and is not asked again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from hermes_agent.events import Reply, TurnEnd
from hermes_agent.messages import ModelRequest
from hermes_core.config.file import ConfigFile
from hermes_core.isolate import attempt
from hermes_core.messages import sanitize_title

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.agent import AIAgent
    from hermes_agent.events import TurnFinished
    from hermes_state.store import SessionDB

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
