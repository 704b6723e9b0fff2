"""The access gate: credentials for every route, security headers on every response."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hermes_core import paths
from hermes_core.errors import ConfigError
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.auth.access import Access
from hermes_dashboard.auth.allowed_origins import allowed_origins
from hermes_dashboard.auth.gate import GUARDED
from hermes_dashboard.resources.models import Model
from support.dashboards import TOKEN, dashboard, dashboard_context, raw_request

if TYPE_CHECKING:
    import httpx2 as httpx

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - the address under test
EVIL = "http://evil.example"
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
PUBLIC = {
    ("POST", "/api/auth/launch"),
    ("POST", "/api/auth/login"),
    ("GET", "/{path:path}"),
    ("HEAD", "/{path:path}"),
}
EXTRA_ROUTES = [
    ("GET", "/api/plugins/hermes-achievements/achievements"),
    ("POST", "/api/plugins/hermes-achievements/rescan"),
    ("GET", "/api/nothing-here"),
    ("OPTIONS", "/api/models"),
    ("GET", "/API/models"),
    ("POST", "/"),
    ("PUT", "/assets/x.js"),
    ("TRACE", "/"),
]


def all_routes(served: RunningDashboard) -> list[tuple[str, str]]:
    """Every method of every route, plugins included."""
    routes = list(EXTRA_ROUTES)
    for route in iter_route_contexts(served.app.routes):
        if isinstance(route.original_route, Mount):
            routes += [(method, f"{route.path}/some/thing") for method in ("GET", "POST", "DELETE")]
            continue
        methods = getattr(route.original_route, "methods", None)
        routes += [(method, str(route.path)) for method in sorted(methods or ())]
    assert len(routes) > 12
    return routes


def request(client: httpx.Client, method: str, path: str, **headers: str) -> httpx.Response:
    return client.request(method, re.sub(r"\{[^}]*\}", "x", path), headers=headers)


def test_every_route_requires_authentication(served: RunningDashboard) -> None:
    for method, path in all_routes(served):
        response = request(served.anonymous, method, path)
        if (method, path) in PUBLIC:
            assert response.status_code in {200, 422}, path
        else:
            assert response.status_code == 401, f"{method} {path}"
            if method != "HEAD":
                assert set(response.json()) == {"detail", "login"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1"},
        {"Host": "localhost.evil.example"},
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": "https://localhost"},
        {"Host": "evil.example:9229", "Origin": "http://evil.example:9229"},
    ],
)
def test_every_route_rejects_other_hosts_and_origins(
    served: RunningDashboard, headers: dict[str, str]
) -> None:
    for method, path in all_routes(served):
        response = request(served.client, method, path, **headers)
        assert response.status_code == 403, f"{method} {path}"


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": "hermes_dashboard_{port}=wrong"},
        {"Cookie": "hermes_dashboard_{port}="},
        {"Cookie": "hermes_dashboard={token}"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer {token}x"},
        {"Authorization": "Basic {token}"},
        {"Authorization": "{token}"},
        {"X-Hermes-Session-Token": "{token}"},
    ],
)
def test_every_route_rejects_invalid_tokens(
    served: RunningDashboard, headers: dict[str, str]
) -> None:
    port = str(served.access.origins.port)
    options = {
        name: value.replace("{port}", port).replace("{token}", TOKEN)
        for name, value in headers.items()
    }
    for method, path in all_routes(served):
        if (method, path) not in PUBLIC:
            assert request(served.anonymous, method, path, **options).status_code == 401, path


def test_alternative_spellings_of_paths_do_not_bypass_the_gate(served: RunningDashboard) -> None:
    for target in (
        "//api//models",
        "/%61pi/models",
        "/api%2Fmodels",
        "/./api/models",
        "/x/../api/models",
        "/api/models/",
        "/api;/models",
        "http://evil.example/api/models",
    ):
        status, body = raw_request(served.url, target)
        assert status == 401 or b'"items"' not in body, target


def test_the_token_is_not_accepted_in_the_url(served: RunningDashboard) -> None:
    response = served.anonymous.get("/api/models", params={"token": TOKEN})
    assert response.status_code == 401


def test_host_names_are_case_insensitive(served: RunningDashboard) -> None:
    port = served.access.origins.port
    response = served.client.get("/api/models", headers={"Host": f"LOCALHOST:{port}"})
    assert response.status_code == 200


def refused(served: RunningDashboard, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as caught, connect(served.socket_url, proxy=None, **options):
        pass
    return int(caught.value.response.status_code)


def test_a_websocket_is_rejected_before_it_opens(served: RunningDashboard) -> None:
    port = served.access.origins.port
    cookie = {"Cookie": f"{served.access.origins.cookie}=wrong"}
    assert refused(served) == 401
    assert refused(served, additional_headers=cookie) == 401
    assert refused(served, additional_headers=served.headers, origin=EVIL) == 403
    for host in ("evil.example", f"evil.example:{port}"):
        headers = {**served.headers, "Host": host, "Origin": f"http://{host}", **HANDSHAKE}
        assert raw_request(served.url, "/api/ws", **headers)[0] == 403


def test_a_websocket_with_a_cookie_requires_an_origin(served: RunningDashboard) -> None:
    token = served.access.cookies.create("")
    cookie = {"Cookie": f"{served.access.origins.cookie}={token}"}
    assert refused(served, additional_headers=cookie) == 403


def test_a_change_with_a_cookie_requires_an_origin(served: RunningDashboard) -> None:
    token = served.access.cookies.create("")
    cookie = {"Cookie": f"{served.access.origins.cookie}={token}"}
    path = "/api/auth/logout"
    assert served.anonymous.post(path, headers=cookie).status_code == 403
    sites = {**cookie, "Sec-Fetch-Site": "cross-site"}
    assert served.anonymous.post(path, headers=sites).status_code == 403
    own = {**cookie, "Origin": served.url}
    assert served.anonymous.post(path, headers=own).status_code == 204
    assert served.anonymous.get("/api/models", headers=cookie).status_code == 401


def test_a_page_on_another_port_cannot_use_the_cookie(served: RunningDashboard) -> None:
    token = served.access.cookies.create("")
    cookie = {"Cookie": f"{served.access.origins.cookie}={token}"}
    for site, status in (("same-site", 403), ("cross-site", 403), ("none", 200)):
        headers = {**cookie, "Sec-Fetch-Site": site}
        assert served.anonymous.get("/api/models", headers=headers).status_code == status
        assert served.anonymous.get("/", headers=headers).status_code == 200


def test_sec_fetch_site_same_origin_replaces_the_origin_header(served: RunningDashboard) -> None:
    token = served.access.cookies.create("")
    headers = {
        "Cookie": f"{served.access.origins.cookie}={token}",
        "Sec-Fetch-Site": "same-origin",
    }
    assert served.anonymous.post("/api/auth/logout", headers=headers).status_code == 204


def test_a_replaced_bearer_token_is_no_longer_valid(
    served: RunningDashboard, db: SessionDB
) -> None:
    assert served.client.get("/api/models").status_code == 200
    record = db.db_path.parent / "run" / DASHBOARD.file_name
    record.write_text('{"token": "another-token"}')
    assert served.client.get("/api/models").status_code == 401
    other = {"Authorization": "Bearer another-token"}
    assert served.anonymous.get("/api/models", headers=other).status_code == 200
    record.unlink()
    assert served.anonymous.get("/api/models", headers=other).status_code == 401


def test_every_response_has_the_security_headers(served: RunningDashboard) -> None:
    responses = [
        served.anonymous.get("/"),
        served.anonymous.get("/some/place"),
        served.anonymous.get("/api/models"),
        served.anonymous.get("/", headers={"Host": "evil.example"}),
        served.client.get("/api/models"),
        served.client.get("/api/nothing"),
        served.client.get("/dashboard-plugins/hermes-achievements/manifest.json"),
    ]
    nonces = set()
    for response in responses:
        policy = response.headers["content-security-policy"]
        nonces.update(re.findall(r"'nonce-([^']+)'", policy))
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["cross-origin-opener-policy"] == "same-origin"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in response.headers
        assert "access-control-allow-origin" not in response.headers
    assert len(nonces) == len(responses)


def test_an_internal_error_has_the_headers_and_hides_the_reason(db: SessionDB) -> None:
    def crash() -> list[Model]:
        raise RuntimeError("the secret is 42")

    with dashboard(dashboard_context(db, models=crash)) as served:
        response = served.client.get("/api/models")
        assert response.status_code == 500
        assert "log" in response.json()["detail"]
        assert "42" not in response.text
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert served.client.get("/metrics").status_code == 200


def test_lone_surrogates_are_escaped(db: SessionDB) -> None:
    half = [Model(name="half \ud83d of a face", provider="x")]
    with dashboard(dashboard_context(db, models=lambda: half)) as served:
        result = served.client.get("/api/models")
        assert result.status_code == 200
        assert "half \\ud83d of" in result.text


def test_an_oversized_sign_in_is_not_read(served: RunningDashboard) -> None:
    large = {"token": "x" * 100_000}
    assert served.anonymous.post("/api/auth/launch", json=large).status_code == 413
    pieces = iter([b'{"token": "', b"x" * 10, b'"}'])
    assert served.anonymous.post("/api/auth/launch", content=pieces).status_code == 413


def test_long_responses_are_compressed_and_streams_are_not(served: RunningDashboard) -> None:
    assert served.client.get("/openapi.json").headers["content-encoding"] == "gzip"
    with served.client.stream("GET", "/api/live") as stream:
        assert "content-encoding" not in stream.headers


def test_metrics_count_routes_and_not_urls(served: RunningDashboard) -> None:
    for number in range(3):
        served.client.get(f"/somewhere/{number}")
    text = served.client.get("/metrics").text
    assert 'route="/{path:path}",status="200"} 3.0' in text
    assert "somewhere" not in text


def test_the_page_is_public_and_everything_else_is_not() -> None:
    assert GUARDED == ("/api", "/metrics", "/dashboard-plugins", "/openapi.json")


# Allowed origins


def test_loopback_uses_links_and_other_addresses_a_password() -> None:
    assert allowed_origins("127.0.0.1", 9229).login == "link"
    assert allowed_origins("::1", 9229).login == "link"
    assert allowed_origins("localhost", 9229).login == "link"
    assert allowed_origins(ALL_INTERFACES, 9229).login == "password"
    assert allowed_origins("192.0.2.7", 9229).login == "password"
    assert allowed_origins("machine.example", 9229).login == "password"


def test_additional_names_may_have_a_port_or_be_full_origins() -> None:
    result = allowed_origins(
        ALL_INTERFACES, 9229, ["Box", "box:8080", "https://hermes.example.org"]
    )
    assert {"box:9229", "box:8080", "hermes.example.org"} < result.hosts
    assert {"http://box:9229", "https://hermes.example.org"} < result.origins
    assert result.is_secure_for("hermes.example.org")
    assert not result.is_secure_for("box:9229")
    assert "0.0.0.0:9229" not in result.hosts


@pytest.mark.parametrize(
    "name", ["ftp://x", "http://x/path", "x y:z", "http://", "a@b", "x:99999999"]
)
def test_an_invalid_host_is_a_config_error(name: str) -> None:
    with pytest.raises(ConfigError, match=r"dashboard\.hosts"):
        allowed_origins("127.0.0.1", 9229, [name])


def test_a_damaged_cookie_file_signs_everyone_out(hermes_home: Path) -> None:
    first = Access(hermes_home, allowed_origins("127.0.0.1", 9229))
    token = first.cookies.create("")
    assert Access(hermes_home, first.origins).is_valid_cookie([token])
    path = hermes_home / "run" / "dashboard-sessions.json"
    assert token not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("[1, 2")
    assert not Access(hermes_home, first.origins).is_valid_cookie([token])
    path.write_text('{"a": 1, "b": {"until": "x"}}')
    assert not Access(hermes_home, first.origins).is_valid_cookie([token])


def test_hints_name_the_command_as_the_user_types_it(
    served: RunningDashboard, db: SessionDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_COMMAND", "./hermes")
    db.create_session("one", source="cli")
    db.append_message("one", "user", "hello")
    refused = served.anonymous.get("/api/models").json()["detail"]
    assert "`./hermes dashboard`" in refused
    used = served.anonymous.post(
        "/api/auth/launch", json={"token": "x"}, headers={"Origin": served.url}
    )
    assert "`./hermes dashboard`" in used.json()["detail"]
    unknown = served.client.get("/api/sessions/unknown").json()["detail"]
    assert "`./hermes sessions list`" in unknown
    change = served.client.delete("/api/settings/dashboard.hosts").json()
    program = Path.cwd() / "hermes"
    assert f" {program} dashboard confirm " in change["command"]
    shown = served.client.get("/api/sessions/one").json()
    assert shown["resume_command"] == (
        f"HERMES_HOME={paths.hermes_home()} {program} chat --resume one"
    )
    monkeypatch.setattr(paths, "default_home", paths.hermes_home)
    shown = served.client.get("/api/sessions/one").json()
    assert shown["resume_command"] == f"{program} chat --resume one"
