"""The terminal UI without a terminal, with a real store and model server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermes_state import SessionDB
from hermes_tui.app import HermesApp
from hermes_tui.conversation import ConversationClient, OpenRequest
from support.daemons import stopping_daemon
from support.model_servers import model_argument, model_servers
from tui_gateway import client
from tui_gateway.hub import Hub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[..., HermesApp]


@pytest.fixture
def serve() -> Iterator[Callable[[str], str]]:
    with stopping_daemon(), model_servers() as start:
        yield lambda steps: model_argument(start(steps))


@pytest.fixture
def db(hermes_home: Path) -> Iterator[SessionDB]:
    with SessionDB() as store:
        yield store


@pytest.fixture
def opened(db: SessionDB, serve: Any, tmp_path: Path) -> Iterator[Open]:
    """A factory of applications with a scripted model; closed after the test."""
    apps: list[HermesApp] = []

    def start(
        steps: str = "[]", session_id: str = "", hub: Hub | None = None, **more: Any
    ) -> HermesApp:
        hub = hub or Hub(db)
        request = OpenRequest(str(tmp_path), session_id, model=serve(steps))
        conversation = ConversationClient(
            lambda on_event: client.connect_in_process(hub, on_event), request
        )
        conversation.open()
        apps.append(HermesApp(conversation, **more))
        return apps[-1]

    yield start
    for app in apps:
        app.conversation.leave(is_over=True)
