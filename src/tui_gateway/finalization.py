"""The end of a live session: save, announce, commit memory, close; failures are independent.

A session is finalized once; further calls do nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, TypedDict

import hermes_plugin_host
from hermes_core.isolate import Failure, Step, run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_state import SessionDB


class Session(TypedDict, total=False):
    """A live session as hermes-agent's server has it."""

    agent: Any
    history: Sequence[Mapping[str, object]]
    history_lock: threading.Lock
    session_key: str | None
    new_session_id: str | None  # with which its client continues
    stays_open: bool  # handed off: another front end continues it
    _finalized: bool


# Guards only the flag; no work is done while it is held.
_FLAG_LOCK: Final = threading.Lock()


def finalize(
    session: Session, end_reason: str, open_store: Callable[[], SessionDB]
) -> list[Failure]:
    """End *session*; returns the failed steps. A second call does nothing."""
    with _FLAG_LOCK:
        if session.get("_finalized"):
            return []
        session["_finalized"] = True
    agent = session.get("agent")
    history = _history(session)
    session_id = getattr(agent, "session_id", None) or session.get("session_key")
    steps: list[Step] = []
    if agent is not None:
        steps += _agent_steps(agent, history)
    if session_id and not session.get("stays_open"):
        following = session.get("new_session_id")
        steps.append(
            Step("close the row", lambda: _end(open_store(), session_id, end_reason, following))
        )
    return run_all(steps)


def _end(store: SessionDB, session_id: str, reason: str, new_session_id: str | None) -> None:
    if new_session_id is None:
        store.end_session(session_id, reason)
    else:
        store.end_session(session_id, reason, new_session_id=new_session_id)


def _history(session: Session) -> list[Mapping[str, object]]:
    lock = session.get("history_lock")
    if lock is None:
        return list(session.get("history") or [])
    with lock:
        return list(session.get("history") or [])


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
    if getattr(agent, "has_announced_end", False) is True:
        return  # announced at the end of its last turn
    hermes_plugin_host.invoke_hook(
        "on_session_end",
        session_id=agent.session_id,
        completed=False,
        interrupted=True,
        model=agent.model,
        platform=agent.platform,
    )
