"""The end of a live session: save, announce, remember, close; each whatever befell the others.

A session ends once. Who asks first does the work, everybody else finds it done.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import hermes_plugin_host
from hermes_core.isolate import Failure, Step, run_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB

    Session = dict[str, Any]

DONE: Final = "_finalized"
# Only guards the flag; nothing is done while it is held.
_FLAG: Final = threading.Lock()


def finalize(
    session: Session, end_reason: str, open_store: Callable[[], SessionDB]
) -> list[Failure]:
    """End *session*; what went wrong. A second call does nothing."""
    with _FLAG:
        if session.get(DONE):
            return []
        session[DONE] = True
    agent = session.get("agent")
    history = _history(session)
    session_id = getattr(agent, "session_id", None) or session.get("session_key")
    steps: list[Step] = []
    if agent is not None:
        steps += _last_words(agent, history)
    if session_id:
        steps.append(
            Step("close the row", lambda: open_store().end_session(session_id, end_reason))
        )
    return run_all(steps)


def _history(session: Session) -> list[dict[str, Any]]:
    lock = session.get("history_lock")
    if lock is None:
        return list(session.get("history") or [])
    with lock:
        return list(session.get("history") or [])


def _last_words(agent: Any, history: list[dict[str, Any]]) -> list[Step]:
    """Save what the agent knows, tell plugins, let memory be made of it."""
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
        return  # its last turn has ended, and that was heard
    hermes_plugin_host.invoke_hook(
        "on_session_end",
        session_id=agent.session_id,
        completed=False,
        interrupted=True,
        model=agent.model,
        platform=agent.platform,
    )
