"""How hermes-agent's server ends a session, for its tests, which replace `_get_db` there."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypedDict

import hermes_plugin_host
from hermes_compat.session_db import OriginalSessionDB
from hermes_conversation.purge_hook import keep_facts
from hermes_core import paths
from hermes_core.isolate import Step, run_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class Session(TypedDict, total=False):
    """A live session as hermes-agent's server has it."""

    agent: Any
    history: Sequence[Mapping[str, object]]
    history_lock: threading.Lock
    session_key: str | None
    _finalized: bool


# Guards only the flag; no work is done while it is held.
_FLAG_LOCK: Final = threading.Lock()


@cache
def _store_at(path: Path) -> OriginalSessionDB:
    return OriginalSessionDB(path, purge_hook=keep_facts)


def get_db() -> OriginalSessionDB:
    """The user's store, opened once per path."""
    return _store_at(paths.state_db_path())


def finalize_session(session: Session, end_reason: str = "tui_close") -> None:
    """End a session of hermes-agent: save its messages, announce its end, close its row."""
    with _FLAG_LOCK:
        if session.get("_finalized"):
            return
        session["_finalized"] = True
    agent, history = session.get("agent"), list(session.get("history") or [])
    session_id = getattr(agent, "session_id", None) or session.get("session_key")
    steps = [] if agent is None else _agent_steps(agent, history)
    if session_id:
        steps.append(Step("close the row", lambda: _end(session_id, end_reason)))
    run_all(steps)


def _end(session_id: str, end_reason: str) -> None:
    from tui_gateway import server  # noqa: PLC0415 - it hands over to this module

    server._get_db().end_session(session_id, end_reason)


def _agent_steps(agent: Any, history: list[Mapping[str, object]]) -> list[Step]:
    """Save the messages, announce the end to plugins, commit memory."""
    steps: list[Step] = []
    messages = getattr(agent, "_session_messages", None) or history
    save = getattr(agent, "_persist_session", None)
    if messages and history and save is not None:
        steps.append(
            Step("save the messages", lambda: save(messages, conversation_history=history))
        )
    steps.append(Step("announce the end", lambda: _announce(agent)))
    steps.append(Step("commit memory", lambda: agent.commit_memory_session(history)))
    return steps


def _announce(agent: Any) -> None:
    hermes_plugin_host.invoke_hook(
        "on_session_end",
        session_id=agent.session_id,
        completed=False,
        interrupted=True,
        model=agent.model,
        platform=agent.platform,
    )
