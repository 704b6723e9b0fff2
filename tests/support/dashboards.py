"""The dashboard on a real server on loopback, and a signed-in client."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx2 as httpx

from hermes_core.atomic_files import write_atomically
from hermes_core.errors import UsageError
from hermes_core.paths import hermes_home
from hermes_dashboard import server as dashboard_server
from hermes_dashboard.app import create_app
from hermes_dashboard.auth.access import Access, TrustedProxies
from hermes_dashboard.auth.allowed_origins import allowed_origins
from hermes_dashboard.context import DashboardContext
from hermes_dashboard.page import Page
from hermes_dashboard.plugins import tabs
from hermes_dashboard.resources.gateway import GatewayAccess, GatewayStatus
from support.plain_http import NO_CERTIFICATES
from support.type_adapters import SharedTypeAdapters
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from hermes_dashboard.app import Dashboard
    from hermes_state import SessionDB

TOKEN = "test-access-token"

SharedTypeAdapters().install()


class NoGateway(GatewayAccess):
    """A gateway that is not running and cannot be started."""

    def state(self) -> GatewayStatus:
        return GatewayStatus()

    def change(self, action: str) -> str:
        raise UsageError(f"Run `hermes gateway {action}` in a terminal.")


class RunningDashboard(NamedTuple):
    """A running dashboard; `client` is signed in, `anonymous` is not."""

    app: Dashboard
    access: Access
    client: httpx.Client
    anonymous: httpx.Client
    url: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a signed-in program."""
        return {"Authorization": f"Bearer {TOKEN}"}

    @property
    def socket_url(self) -> str:
        """The URL of the chat socket."""
        return self.url.replace("http", "ws", 1) + "/api/ws"


def dashboard_context(db: SessionDB, **others: Any) -> DashboardContext:
    """Context for a test: no running gateway and no models."""
    folder = hermes_home() / "workspaces" / "owner"
    folder.mkdir(parents=True, exist_ok=True)
    fields: dict[str, Any] = {
        "gateway": NoGateway(db),
        "models": list,
        "start_folder": folder,
        **others,
    }
    return DashboardContext(db, hermes_home(), **fields)


@contextlib.contextmanager
def dashboard(
    context: DashboardContext,
    *,
    host: str = "127.0.0.1",
    page: Path | None = None,
    bundled: Path | None = None,
    names: tuple[str, ...] = (),
    proxies: tuple[str, ...] = (),
    at: socket.socket | None = None,
) -> Iterator[RunningDashboard]:
    """Serve a dashboard on loopback; *host* only sets the allowed origins.

    *at* is a listening socket, which stays open: dashboards one after the other have one address.
    """
    listener = at.dup() if at else dashboard_server.open_socket("127.0.0.1", 0)
    port = listener.getsockname()[1]
    write_atomically(context.home / "run" / "dashboard.json", json.dumps({"token": TOKEN}))
    origins = allowed_origins(host, port, names)
    access = Access(context.home, origins, proxies=TrustedProxies(proxies))
    page_files = Page(page) if page else Page.locate()
    app = create_app(context, access, page_files, tabs=tabs.TabFinder(context.home, bundled))
    server = dashboard_server.create_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{port}"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        with _client(url, headers) as client, _client(url) as anonymous:
            wait_until(lambda: server.started)
            yield RunningDashboard(app, access, client, anonymous, url)
    finally:
        server.should_exit = True
        thread.join(timeout=PATIENCE_SECONDS)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"
        _wait_for_scans()


def _client(url: str, headers: dict[str, str] | None = None) -> httpx.Client:
    return httpx.Client(
        base_url=url,
        headers=headers,
        timeout=PATIENCE_SECONDS,
        trust_env=False,
        verify=NO_CERTIFICATES,
    )


def _wait_for_scans() -> None:
    """Wait for background scans of this process, which would record in the next test's home."""
    for thread in threading.enumerate():
        if thread.name == "hermes-achievements-scan":
            thread.join(timeout=PATIENCE_SECONDS)


def raw_request(url: str, target: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    """Send a request with an unmodified target; return the status and body."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS
    )
    with contextlib.closing(connection):
        connection.putrequest(method, target, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.read()


@contextlib.contextmanager
def dashboard_client(db: SessionDB, **others: Any) -> Iterator[httpx.Client]:
    """A signed-in client of a dashboard over *db*; *others* are fields of the context."""
    with dashboard(dashboard_context(db, **others)) as running:
        yield running.client
