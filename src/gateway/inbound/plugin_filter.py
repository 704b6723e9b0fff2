"""Offers each chat message to plugins before it is checked and stored: `pre_gateway_dispatch`.

A message on which a plugin fails to decide is stored as undecided, and offered once more before it
is handled.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from typing import TYPE_CHECKING, Any, Final

from hermes_conversation.agent_factory import notify_plugins
from hermes_core.config.presence import is_set
from hermes_core.hooks import GuardFailure

if TYPE_CHECKING:
    from gateway.platforms.base import MessageEvent
    from gateway.routing.session_routes import SessionRoutes

log = logging.getLogger(__name__)

FAILED: Final = "failed"
ACTIONS: Final = frozenset({"skip", "rewrite", "allow"})


async def filter_message(
    event: MessageEvent, gateway: object, routes: SessionRoutes
) -> MessageEvent | None:
    """The message as plugins leave it; None if one has dropped it."""
    if event.is_deletion or event.internal or not is_set("plugins.enabled"):
        return event
    return await asyncio.to_thread(decide, event, gateway, routes)


def decide(event: MessageEvent, gateway: object, routes: SessionRoutes) -> MessageEvent | None:
    """The message as plugins leave it, undecided if one fails; None if one has dropped it."""
    from hermes_compat.session_store import SessionStore  # noqa: PLC0415 - plugins know its names

    event = dataclasses.replace(event, undecided="")
    store = SessionStore.of(routes)
    answers = notify_plugins(
        "pre_gateway_dispatch", event=event, gateway=gateway, session_store=store
    )
    decision = next((answer for answer in answers if _action(answer)), None)
    if isinstance(decision, GuardFailure):
        log.warning("message %s is undecided: %s", event.message_id, decision)
        return dataclasses.replace(event, undecided=str(decision))
    if decision is None or _action(decision) == "allow":
        return event
    if _action(decision) == "skip":
        reason = decision.get("reason") or "no reason given"
        log.info("message %s dropped by a plugin: %s", event.message_id, reason)
        return None
    text = decision.get("text")
    if not isinstance(text, str):
        log.warning("plugin returned a rewrite without text: message left unchanged")
        return event
    return dataclasses.replace(event, text=text)


def _action(answer: Any) -> str:
    if isinstance(answer, GuardFailure):
        return FAILED
    action = answer.get("action") if isinstance(answer, dict) else None
    return str(action) if action in ACTIONS else ""
