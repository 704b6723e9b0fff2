"""Input to the terminal UI in tests, and its visible content."""

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
    from textual.screen import Screen

SIZE = (100, 30)


async def wait_for(pilot: Pilot[Any], is_true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, "timed out"
        await pilot.pause(0.02)


async def wait_for_screen(pilot: Pilot[Any], kind: type[Screen[Any]]) -> None:
    """Wait until a screen is shown, with its widgets."""
    await wait_for(
        pilot, lambda: isinstance(pilot.app.screen, kind) and pilot.app.screen.is_mounted
    )


async def submit(pilot: Pilot[Any], text: str) -> None:
    pilot.app.query_one(Prompt).fill(text)
    await pilot.press("enter")


def is_idle(app: HermesApp) -> bool:
    return not app.is_busy


async def submit_and_wait(pilot: Pilot[Any], text: str) -> None:
    await submit(pilot, text)
    app = pilot.app
    assert isinstance(app, HermesApp)
    await wait_for(pilot, lambda: is_idle(app))
    await pilot.pause()


def user_texts(app: HermesApp) -> list[str]:
    return [message.text for message in app.query(UserMessage)]


def agent_texts(app: HermesApp) -> list[str]:
    return [message.source for message in app.query(AgentMessage)]


def notice_texts(app: HermesApp) -> list[str]:
    return [notice.text for notice in app.query(NoticeLine)]


def last_notice(app: HermesApp) -> str:
    """The text of the last notice; empty before the first one."""
    return notice_texts(app)[-1] if notice_texts(app) else ""


def stored_texts(app: HermesApp) -> list[str]:
    messages = app.conversation.call("session.history")["messages"]
    return [str(row["content"]) for row in messages]
