"""The dashboard on a real server on loopback, and a client that is let in."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx2 as httpx

from hermes_core.atomic_files import write_atomically
from hermes_core.paths import hermes_home
from hermes_dashboard import server as serving
from hermes_dashboard.app import create_app
from hermes_dashboard.auth.access import Access
from hermes_dashboard.auth.allowed_origins import allowed_origins
from hermes_dashboard.context import DashboardContext
from hermes_dashboard.page import Page
from hermes_dashboard.plugins import tabs
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_dashboard.app import Dashboard
    from hermes_state import SessionDB

TOKEN = "the-word-of-the-tests"


class NoGateway:
    """A gateway that does not run."""

    def state(self) -> dict[str, Any]:
        return {
            "is_running": False,
            "pid": None,
            "started_at": None,
            "version": None,
            "platforms": [],
        }

    def errors(self, limit: int) -> list[dict[str, Any]]:
        return []

    def chats(self, limit: int) -> list[dict[str, Any]]:
        return []


class Served(NamedTuple):
    """A dashboard that runs. `client` is let in; `stranger` is not."""

    app: Dashboard
    access: Access
    client: httpx.Client
    stranger: httpx.Client
    url: str

    @property
    def headers(self) -> dict[str, str]:
        """What lets a program in."""
        return {"Authorization": f"Bearer {TOKEN}"}

    @property
    def socket_url(self) -> str:
        """Where its chat is."""
        return self.url.replace("http", "ws", 1) + "/api/ws"


def parts_of(db: SessionDB, **others: Any) -> DashboardContext:
    """Parts for a test: no gateway runs, and no model is known."""
    facts: dict[str, Any] = {"gateway": NoGateway(), "models": list, **others}
    return DashboardContext(db, hermes_home(), **facts)


@contextlib.contextmanager
def dashboard(
    parts: DashboardContext,
    *,
    host: str = "127.0.0.1",
    page: Path | None = None,
    bundled: Path | None = None,
    names: tuple[str, ...] = (),
) -> Iterator[Served]:
    """Serve *parts*. With another *host* than loopback it only pretends to listen there."""
    listening = serving.open_socket("127.0.0.1", 0)
    port = listening.getsockname()[1]
    write_atomically(parts.home / "run" / "dashboard.json", json.dumps({"token": TOKEN}))
    access = Access(parts.home, allowed_origins(host, port, names))
    shown = Page(page) if page else Page.locate()
    app = create_app(parts, access, shown, tabs=lambda: tabs.tabs(parts.home, bundled))
    server = serving.create_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{port}"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        with (
            httpx.Client(
                base_url=url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
            ) as client,
            httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False) as stranger,
        ):
            wait_until(lambda: server.started)
            yield Served(app, access, client, stranger, url)
    finally:
        server.should_exit = True
        thread.join(timeout=PATIENCE_SECONDS)
        listening.close()
        assert not thread.is_alive(), "the server did not end"


def raw(url: str, target: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """The status and body for a request whose target is sent as it is written."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS
    )
    with contextlib.closing(connection):
        connection.putrequest(method, target, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()


@contextlib.contextmanager
def served(db: SessionDB, **others: Any) -> Iterator[httpx.Client]:
    """A client of a dashboard over *db*, let in; *others* are further parts."""
    with dashboard(parts_of(db, **others)) as result:
        yield result.client
