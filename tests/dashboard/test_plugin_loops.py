"""Handlers of plugins that block: only their own plugin waits for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from hermes_dashboard.plugins import plugin_loop
from support.dashboards import dashboard, dashboard_context
from support.plugin_folders import make_dashboard_plugin
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_state import SessionDB

pytestmark = pytest.mark.filterwarnings(
    "ignore::pydantic.warnings.UnsupportedFieldAttributeWarning"
)
BLOCKS = """
import asyncio, pathlib, time
from fastapi import APIRouter
from starlette.responses import StreamingResponse
here = pathlib.Path(__file__).parent
router = APIRouter()

@router.get("/hello")
async def hello() -> dict[str, str]:
    return {"hello": "you"}

@router.get("/blocks")
async def blocks() -> dict[str, str]:
    (here / "begun").touch()
    while not (here / "go-on").exists():
        time.sleep(0.01)
    return {"blocked": "long"}

@router.get("/waits")
async def waits() -> None:
    (here / "begun").touch()
    try:
        await asyncio.sleep(3600)
    finally:
        (here / "cancelled").touch()

@router.post("/echo")
async def echo(body: dict[str, str]) -> dict[str, str]:
    return body

@router.get("/stream")
async def stream() -> StreamingResponse:
    async def pieces():
        for number in range(5):
            yield f"{number} "
            await asyncio.sleep(0.01)
    return StreamingResponse(pieces(), media_type="text/plain")
"""


pytestmark = pytest.mark.usefixtures("plugin_modules_removed")


def test_a_blocking_handler_stops_no_other_request(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_loop, "START_SECONDS", 0.5)
    monkeypatch.setattr(plugin_loop, "RESPONSE_SECONDS", 3.0)
    folder = make_dashboard_plugin(tmp_path, "stuck", BLOCKS)
    make_dashboard_plugin(tmp_path, "well", BLOCKS)
    with (
        dashboard(dashboard_context(db), bundled=tmp_path) as running,
        ThreadPoolExecutor(1) as pool,
    ):
        client = running.client
        blocked = pool.submit(client.get, "/api/plugins/stuck/blocks")
        wait_until((folder / "begun").exists)
        assert client.get("/api/overview", timeout=PATIENCE_SECONDS).status_code == 200
        assert client.get("/api/plugins/well/hello", timeout=PATIENCE_SECONDS).json() == {
            "hello": "you"
        }
        for _ in range(2):
            refused = client.get("/api/plugins/stuck/hello", timeout=PATIENCE_SECONDS)
            assert (refused.status_code, "stuck is busy" in refused.json()["detail"]) == (503, True)
        late = blocked.result(timeout=PATIENCE_SECONDS)
        assert (late.status_code, "3 seconds" in late.json()["detail"]) == (504, True)
        (folder / "go-on").touch()
        wait_until(lambda: client.get("/api/plugins/stuck/hello").status_code == 200)


def test_a_handler_that_does_not_respond_is_cancelled(
    db: SessionDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_loop, "RESPONSE_SECONDS", 0.5)
    folder = make_dashboard_plugin(tmp_path, "slow", BLOCKS)
    with dashboard(dashboard_context(db), bundled=tmp_path) as running:
        assert running.client.get("/api/plugins/slow/waits").status_code == 504
        wait_until((folder / "cancelled").exists)
        assert running.client.get("/api/plugins/slow/hello").status_code == 200


def test_bodies_and_streams_pass_between_the_loops(db: SessionDB, tmp_path: Path) -> None:
    make_dashboard_plugin(tmp_path, "fine", BLOCKS)
    with dashboard(dashboard_context(db), bundled=tmp_path) as running:
        body = {"text": "x" * 300_000}
        assert running.client.post("/api/plugins/fine/echo", json=body).json() == body
        assert running.client.get("/api/plugins/fine/stream").text == "0 1 2 3 4 "
    assert "hermes-plugin-fine-loop" not in {thread.name for thread in threading.enumerate()}
