"""The gate: nothing is reached without passing it, and no answer leaves without its headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hermes_core.errors import ConfigError
from hermes_core.instance_record import DASHBOARD
from hermes_dashboard.auth.access import Access
from hermes_dashboard.auth.allowed_origins import doors
from hermes_dashboard.auth.gate import GUARDED
from support.dashboards import TOKEN, dashboard, parts_of, raw

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx

    from hermes_state import SessionDB
    from support.dashboards import Served

ANYWHERE = "0.0.0.0"  # noqa: S104 - what others are kept from, or let in by
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
MORE = [
    ("GET", "/api/plugins/hermes-achievements/achievements"),
    ("POST", "/api/plugins/hermes-achievements/rescan"),
    ("GET", "/api/nothing-here"),
    ("OPTIONS", "/api/models"),
    ("GET", "/API/models"),
    ("POST", "/"),
    ("PUT", "/assets/x.js"),
    ("TRACE", "/"),
]


def all_routes(served: Served) -> list[tuple[str, str]]:
    """Every method of every route, plugins included."""
    found = list(MORE)
    for one in iter_route_contexts(served.app.routes):
        if isinstance(one.original_route, Mount):
            found += [(method, f"{one.path}/some/thing") for method in ("GET", "POST", "DELETE")]
            continue
        methods = getattr(one.original_route, "methods", None)
        found += [(method, str(one.path)) for method in sorted(methods or ())]
    assert len(found) > 12
    return found


def ask(client: httpx.Client, method: str, path: str, **headers: str) -> httpx.Response:
    return client.request(method, re.sub(r"\{[^}]*\}", "x", path), headers=headers)


def test_every_route_refuses_those_who_are_not_logged_in(served: Served) -> None:
    for method, path in all_routes(served):
        answer = ask(served.stranger, method, path)
        if (method, path) in PUBLIC:
            assert answer.status_code in {200, 422}, path
        else:
            assert answer.status_code == 401, f"{method} {path}"
            if method != "HEAD":
                assert set(answer.json()) == {"detail", "login"}


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
def test_every_route_refuses_other_hosts_and_pages(served: Served, headers: dict[str, str]) -> None:
    for method, path in all_routes(served):
        answer = ask(served.client, method, path, **headers)
        assert answer.status_code == 403, f"{method} {path}"


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
def test_every_route_refuses_wrong_words(served: Served, headers: dict[str, str]) -> None:
    port = str(served.access.doors.port)
    given = {
        name: value.replace("{port}", port).replace("{token}", TOKEN)
        for name, value in headers.items()
    }
    for method, path in all_routes(served):
        if (method, path) not in PUBLIC:
            assert ask(served.stranger, method, path, **given).status_code == 401, path


def test_paths_that_are_written_otherwise_are_no_way_around(served: Served) -> None:
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
        status, body = raw(served.url, target)
        assert status == 401 or b'"items"' not in body, target


def test_the_word_is_not_taken_from_the_address(served: Served) -> None:
    answer = served.stranger.get("/api/models", params={"token": TOKEN})
    assert answer.status_code == 401


def test_names_are_compared_without_case(served: Served) -> None:
    port = served.access.doors.port
    answer = served.client.get("/api/models", headers={"Host": f"LOCALHOST:{port}"})
    assert answer.status_code == 200


def refused(served: Served, **given: Any) -> int:
    with pytest.raises(InvalidStatus) as caught, connect(served.socket_url, proxy=None, **given):
        pass
    return int(caught.value.response.status_code)


def test_a_socket_is_refused_before_it_opens(served: Served) -> None:
    port = served.access.doors.port
    cookie = {"Cookie": f"{served.access.doors.cookie}=wrong"}
    assert refused(served) == 401
    assert refused(served, additional_headers=cookie) == 401
    assert refused(served, additional_headers=served.headers, origin=EVIL) == 403
    for host in ("evil.example", f"evil.example:{port}"):
        headers = {**served.headers, "Host": host, "Origin": f"http://{host}", **HANDSHAKE}
        assert raw(served.url, "/api/ws", **headers)[0] == 403


def test_a_socket_with_a_cookie_needs_an_origin(served: Served) -> None:
    word = served.access.cookies.make("")
    cookie = {"Cookie": f"{served.access.doors.cookie}={word}"}
    assert refused(served, additional_headers=cookie) == 403


def test_a_change_with_a_cookie_needs_an_origin(served: Served) -> None:
    word = served.access.cookies.make("")
    cookie = {"Cookie": f"{served.access.doors.cookie}={word}"}
    path = "/api/auth/logout"
    assert served.stranger.post(path, headers=cookie).status_code == 403
    sites = {**cookie, "Sec-Fetch-Site": "cross-site"}
    assert served.stranger.post(path, headers=sites).status_code == 403
    own = {**cookie, "Origin": served.url}
    assert served.stranger.post(path, headers=own).status_code == 204
    assert served.stranger.get("/api/models", headers=cookie).status_code == 401


def test_a_page_on_another_port_cannot_use_the_cookie(served: Served) -> None:
    word = served.access.cookies.make("")
    cookie = {"Cookie": f"{served.access.doors.cookie}={word}"}
    for site, status in (("same-site", 403), ("cross-site", 403), ("none", 200)):
        headers = {**cookie, "Sec-Fetch-Site": site}
        assert served.stranger.get("/api/models", headers=headers).status_code == status
        assert served.stranger.get("/", headers=headers).status_code == 200


def test_a_change_may_say_same_origin_instead(served: Served) -> None:
    word = served.access.cookies.make("")
    headers = {
        "Cookie": f"{served.access.doors.cookie}={word}",
        "Sec-Fetch-Site": "same-origin",
    }
    assert served.stranger.post("/api/auth/logout", headers=headers).status_code == 204


def test_a_word_that_was_changed_lets_nobody_in_any_more(served: Served, db: SessionDB) -> None:
    assert served.client.get("/api/models").status_code == 200
    place = db.db_path.parent / "run" / DASHBOARD.file_name
    place.write_text('{"token": "another-word"}')
    assert served.client.get("/api/models").status_code == 401
    other = {"Authorization": "Bearer another-word"}
    assert served.stranger.get("/api/models", headers=other).status_code == 200
    place.unlink()
    assert served.stranger.get("/api/models", headers=other).status_code == 401


def test_every_answer_has_the_headers(served: Served) -> None:
    answers = [
        served.stranger.get("/"),
        served.stranger.get("/some/place"),
        served.stranger.get("/api/models"),
        served.stranger.get("/", headers={"Host": "evil.example"}),
        served.client.get("/api/models"),
        served.client.get("/api/nothing"),
        served.client.get("/dashboard-plugins/hermes-achievements/manifest.json"),
    ]
    nonces = set()
    for one in answers:
        policy = one.headers["content-security-policy"]
        nonces.update(re.findall(r"'nonce-([^']+)'", policy))
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
        assert one.headers["x-frame-options"] == "DENY"
        assert one.headers["cross-origin-opener-policy"] == "same-origin"
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in one.headers
        assert "access-control-allow-origin" not in one.headers
    assert len(nonces) == len(answers)


def test_a_crash_is_told_with_the_headers_and_without_its_reason(db: SessionDB) -> None:
    def crash() -> list[dict[str, Any]]:
        raise RuntimeError("the secret is 42")

    with dashboard(parts_of(db, models=crash)) as served:
        answer = served.client.get("/api/models")
        assert answer.status_code == 500
        assert "log" in answer.json()["detail"]
        assert "42" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert served.client.get("/metrics").status_code == 200


def test_text_that_is_no_unicode_is_passed_on(db: SessionDB) -> None:
    half = [{"name": "half \ud83d of a face", "provider": "x"}]
    with dashboard(parts_of(db, models=lambda: half)) as served:
        found = served.client.get("/api/models")
        assert found.status_code == 200
        assert "half \\ud83d of" in found.text


def test_a_login_that_is_too_large_is_not_read(served: Served) -> None:
    large = {"token": "x" * 100_000}
    assert served.stranger.post("/api/auth/launch", json=large).status_code == 413
    pieces = iter([b'{"token": "', b"x" * 10, b'"}'])
    assert served.stranger.post("/api/auth/launch", content=pieces).status_code == 413


def test_long_answers_are_packed_and_streams_are_not(served: Served) -> None:
    assert served.client.get("/openapi.json").headers["content-encoding"] == "gzip"
    with served.client.stream("GET", "/api/live") as stream:
        assert "content-encoding" not in stream.headers


def test_metrics_count_routes_and_not_addresses(served: Served) -> None:
    for number in range(3):
        served.client.get(f"/somewhere/{number}")
    text = served.client.get("/metrics").text
    assert 'route="/{path:path}",status="200"} 3.0' in text
    assert "somewhere" not in text


def test_the_page_is_public_and_everything_else_is_not() -> None:
    assert GUARDED == ("/api", "/metrics", "/dashboard-plugins", "/openapi.json")


# The names it is reached under


def test_loopback_is_opened_with_a_link_and_other_addresses_with_a_password() -> None:
    assert doors("127.0.0.1", 9229).login == "link"
    assert doors("::1", 9229).login == "link"
    assert doors("localhost", 9229).login == "link"
    assert doors(ANYWHERE, 9229).login == "password"
    assert doors("192.0.2.7", 9229).login == "password"
    assert doors("machine.example", 9229).login == "password"


def test_further_names_may_have_a_port_or_be_whole_origins() -> None:
    found = doors(ANYWHERE, 9229, ["Box", "box:8080", "https://hermes.example.org"])
    assert {"box:9229", "box:8080", "hermes.example.org"} < found.hosts
    assert {"http://box:9229", "https://hermes.example.org"} < found.origins
    assert found.is_secure_for("hermes.example.org")
    assert not found.is_secure_for("box:9229")
    assert "0.0.0.0:9229" not in found.hosts


@pytest.mark.parametrize(
    "name", ["ftp://x", "http://x/path", "x y:z", "http://", "a@b", "x:99999999"]
)
def test_a_name_that_is_none_is_said_to_be(name: str) -> None:
    with pytest.raises(ConfigError, match=r"dashboard\.hosts"):
        doors("127.0.0.1", 9229, [name])


def test_a_file_of_cookies_that_is_damaged_logs_everybody_out(hermes_home: Path) -> None:
    first = Access(hermes_home, doors("127.0.0.1", 9229))
    word = first.cookies.make("")
    assert Access(hermes_home, first.doors).cookie_fits([word])
    path = hermes_home / "run" / "dashboard-sessions.json"
    assert word not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("[1, 2")
    assert not Access(hermes_home, first.doors).cookie_fits([word])
    path.write_text('{"a": 1, "b": {"until": "x"}}')
    assert not Access(hermes_home, first.doors).cookie_fits([word])
