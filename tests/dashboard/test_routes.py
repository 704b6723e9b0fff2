"""Requests reach their routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx2 as httpx


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
