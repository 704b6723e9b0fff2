"""What a test does at the terminal UI, and what it sees there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hermes_tui.app import HermesApp
from hermes_tui.messages import AgentMessage, NoticeLine, UserMessage
from hermes_tui.prompt import Prompt
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.pilot import Pilot

SIZE = (100, 30)


async def until(pilot: Pilot[Any], is_true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        await pilot.pause(0.02)


async def say(pilot: Pilot[Any], text: str) -> None:
    pilot.app.query_one(Prompt).fill(text)
    await pilot.press("enter")


def is_idle(app: HermesApp) -> bool:
    return not app.is_busy


async def asked(pilot: Pilot[Any], text: str) -> None:
    await say(pilot, text)
    app = pilot.app
    assert isinstance(app, HermesApp)
    await until(pilot, lambda: is_idle(app))
    await pilot.pause()


def said(app: HermesApp) -> list[str]:
    return [item.text for item in app.query(UserMessage)]


def answers(app: HermesApp) -> list[str]:
    return [item.source for item in app.query(AgentMessage)]


def notices(app: HermesApp) -> list[str]:
    return [item.text for item in app.query(NoticeLine)]


def stored(app: HermesApp) -> list[str]:
    messages = app.conversation.call("session.history")["messages"]
    return [str(row["content"]) for row in messages]
