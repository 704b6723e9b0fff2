"""Requests reach their routes, which are built when they are first needed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from hermes_dashboard.routes import LateRoute, ResourceRouter

if TYPE_CHECKING:
    import httpx2 as httpx

    from support.dashboards import RunningDashboard

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/plugins", 200),  # a resource
        ("GET", "/api/plugins/nothing/here", 404),  # the APIs of plugins, below the same path
        ("POST", "/api/schedules/1", 405),
        ("PATCH", "/api/health", 405),
        ("GET", "/api/health/", 404),
        ("GET", "/api/gateway/nodes", 200),
        ("GET", "/api/memory/people", 200),
        ("GET", "/api/nothing", 404),
        ("GET", "/gateway", 200),  # the page
        ("GET", "//api/health", 200),  # the page, too: no resource
    ],
)
def test_a_path_reaches_its_route(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    assert client.request(method, path).status_code == status, path


def test_a_request_builds_its_own_route_only(served: RunningDashboard) -> None:
    def built() -> list[str]:
        routes = [route for route in served.app.routes if isinstance(route, LateRoute)]
        return [route.path for route in routes if "dependant" in vars(route)]

    assert built() == []
    assert served.client.get("/api/health").status_code == 200
    assert built() == ["/api/health"]


class Answer(BaseModel):
    """A response."""

    text: str = ""


def test_a_route_is_built_once_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The OpenAPI document looks fields up by identity; a second build would replace them."""
    router = ResourceRouter("/api/things", tag="things")
    router.get("/list", response_model=Answer)(Answer)
    builds: list[APIRoute] = []
    build = APIRoute.__init__

    def slow_build(route: APIRoute, *arguments: Any, **options: Any) -> None:
        builds.append(route)
        time.sleep(0.3)  # the other threads come here meanwhile
        build(route, *arguments, **options)

    monkeypatch.setattr(APIRoute, "__init__", slow_build)
    (route,) = router.routes
    threads = [threading.Thread(target=getattr, args=(route, "app")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert builds == [route]


BUILD_IN_THREADS = """
import sys, threading
from pathlib import Path
from hermes_state.engine.sqlite import driver
driver.install()
from fastapi import FastAPI, Query
from hermes_state import SessionDB
from support.dashboards import *

def build():
    while not done.is_set():
        @FastAPI().get("/")
        def route(value: str = Query(alias="other")): ...

done = threading.Event()
sys.setswitchinterval(1e-6)
with SessionDB(Path("state.db")) as db, dashboard(dashboard_context(db)) as served:
    builders = [threading.Thread(target=build) for _ in range(3)]
    for builder in builders: builder.start()
    for route in served.app.routes: getattr(route, "dependant", None)
    done.set()
    for builder in builders: builder.join()
"""


def test_routes_are_built_without_warnings_while_a_plugin_builds_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUILD_IN_THREADS], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
