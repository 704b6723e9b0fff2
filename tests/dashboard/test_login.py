"""Sign-in with single-use links and with the password, and sign-out."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from hermes_core.atomic_files import write_atomically
from hermes_core.clock import ManualClock
from hermes_core.errors import ConfigError, UsageError
from hermes_dashboard.auth import gate
from hermes_dashboard.auth.access import (
    MAX_FAILURES,
    MAX_TOTAL_FAILURES,
    WINDOW_SECONDS,
    LoginRateLimit,
    TrustedProxies,
)
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.auth.tokens import COOKIE_SECONDS, LINK_SECONDS, Cookies, Links
from support.daemons import stopping_daemon
from support.dashboards import TOKEN, dashboard, dashboard_context
from support.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx
    from websockets.sync.client import ClientConnection

    from hermes_state import SessionDB
    from support.dashboards import RunningDashboard

PASSWORD = "correct horse battery"


@pytest.fixture
def locked(db: SessionDB, hermes_home: Path) -> Iterator[RunningDashboard]:
    """A dashboard with a password."""
    PasswordFile(hermes_home).set(PASSWORD)
    with dashboard(dashboard_context(db), host="192.0.2.7") as running:
        yield running


def launch(served: RunningDashboard, token: str) -> httpx.Response:
    own = {"Origin": served.url}
    return served.anonymous.post("/api/auth/launch", json={"token": token}, headers=own)


def login(served: RunningDashboard, password: str) -> httpx.Response:
    own = {"Origin": served.url}
    return served.anonymous.post("/api/auth/login", json={"password": password}, headers=own)


def token_of(link: str) -> str:
    address, _, token = link.partition("#token=")
    assert address.endswith("/")
    return token


def test_a_link_works_once(served: RunningDashboard) -> None:
    link = served.client.post("/api/auth/links").json()["url"]
    assert link.startswith(f"{served.url}/#token=")
    assert launch(served, token_of(link)).status_code == 204
    assert served.anonymous.get("/api/models").status_code == 200
    again = launch(served, token_of(link))
    assert again.status_code == 401
    assert again.json()["login"] == "link"
    assert "hermes dashboard" in again.json()["detail"]


def test_unknown_link_tokens_are_rejected(served: RunningDashboard) -> None:
    assert launch(served, "x" * 43).status_code == 401
    assert launch(served, "").status_code == 401
    assert launch(served, TOKEN).status_code == 401
    assert launch(served, "x" * 1000).status_code == 422


def test_the_cookie_is_http_only_and_same_site(served: RunningDashboard) -> None:
    response = launch(served, token_of(served.access.link()))
    cookie = SimpleCookie(response.headers["set-cookie"])[served.access.origins.cookie]
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "strict"
    assert cookie["path"] == "/"
    assert not cookie["domain"]
    assert int(cookie["max-age"]) == 30 * 24 * 3600
    assert not cookie["secure"]  # without TLS
    assert response.content == b""


def test_behind_a_proxy_with_tls_the_cookie_is_secure(db: SessionDB, hermes_home: Path) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    names = ("https://hermes.example.org",)
    with dashboard(dashboard_context(db), host="192.0.2.7", names=names) as served:
        headers = {"Host": "hermes.example.org", "Origin": names[0]}
        response = served.anonymous.post(
            "/api/auth/login", json={"password": PASSWORD}, headers=headers
        )
        assert response.status_code == 204
        assert "secure" in response.headers["set-cookie"].lower()


def test_sign_out_invalidates_the_cookie(served: RunningDashboard) -> None:
    launch(served, token_of(served.access.link()))
    own = {"Origin": served.url}
    result = dict(served.anonymous.cookies)
    assert served.anonymous.post("/api/auth/logout", headers=own).status_code == 204
    assert not dict(served.anonymous.cookies)
    line = "; ".join(f"{name}={value}" for name, value in result.items())
    assert served.anonymous.get("/api/models", headers={"Cookie": line}).status_code == 401


def test_sign_ins_survive_a_restart(db: SessionDB) -> None:
    with dashboard(dashboard_context(db)) as first:
        token = first.access.cookies.create("")
    with dashboard(dashboard_context(db)) as second:
        line = f"{second.access.origins.cookie}={token}"
        assert second.anonymous.get("/api/models", headers={"Cookie": line}).status_code == 200


def test_a_page_cannot_create_links(served: RunningDashboard) -> None:
    launch(served, token_of(served.access.link()))
    own = {"Origin": served.url}
    assert served.anonymous.post("/api/auth/links", headers=own).status_code == 403


# The password


def test_the_password_signs_in(locked: RunningDashboard) -> None:
    assert locked.anonymous.get("/api/models").json()["login"] == "password"
    wrong = login(locked, "wrong horse battery")
    assert wrong.status_code == 401
    assert wrong.json()["login"] == "password"
    assert login(locked, PASSWORD).status_code == 204
    assert locked.anonymous.get("/api/models").status_code == 200


def test_links_are_rejected_where_a_password_is_required(locked: RunningDashboard) -> None:
    assert launch(locked, locked.access.links.create()).status_code == 401
    assert "token" not in locked.client.post("/api/auth/links").json()["url"]


def test_passwords_are_rejected_where_links_are_used(
    served: RunningDashboard, hermes_home: Path
) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    response = login(served, PASSWORD)
    assert response.status_code == 401
    assert response.json()["login"] == "link"


def test_password_attempts_are_rate_limited(locked: RunningDashboard) -> None:
    for _ in range(5):
        assert login(locked, "a wrong one").status_code == 401
    stopped = login(locked, PASSWORD)
    assert stopped.status_code == 429
    assert 1 <= int(stopped.headers["retry-after"]) <= 60


def test_behind_a_trusted_proxy_guessing_locks_out_only_the_guesser(
    db: SessionDB, hermes_home: Path
) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    context = dashboard_context(db)
    with dashboard(context, host="192.0.2.7", proxies=("127.0.0.0/8",)) as running:

        def attempt(password: str, forwarded: str) -> int:
            headers = {"Origin": running.url, "X-Forwarded-For": forwarded}
            body = {"password": password}
            return running.anonymous.post("/api/auth/login", json=body, headers=headers).status_code

        for number in range(5):  # what the client itself writes does not count
            assert attempt("a wrong one", f"198.51.100.{number}, 203.0.113.9") == 401
        assert attempt(PASSWORD, "203.0.113.9") == 429
        assert attempt(PASSWORD, "203.0.113.10") == 204


def test_a_client_that_is_no_trusted_proxy_cannot_choose_its_address(
    locked: RunningDashboard,
) -> None:
    codes = [
        locked.anonymous.post(
            "/api/auth/login",
            json={"password": "a wrong one"},
            headers={"Origin": locked.url, "X-Forwarded-For": f"203.0.113.{number}"},
        ).status_code
        for number in range(7)
    ]
    assert codes == [401] * 5 + [429] * 2


def test_an_invalid_proxy_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"dashboard\.trusted_proxies: 'proxy'"):
        TrustedProxies(["proxy"])


def test_a_new_password_invalidates_all_cookies(
    locked: RunningDashboard, hermes_home: Path
) -> None:
    login(locked, PASSWORD)
    assert locked.anonymous.get("/api/models").status_code == 200
    PasswordFile(hermes_home).set("another horse")
    assert locked.anonymous.get("/api/models").status_code == 401
    assert login(locked, PASSWORD).status_code == 401
    assert login(locked, "another horse").status_code == 204


def test_sign_in_fails_without_a_stored_password(
    locked: RunningDashboard, hermes_home: Path
) -> None:
    assert PasswordFile(hermes_home).remove()
    assert login(locked, "").status_code == 401
    assert login(locked, PASSWORD).status_code == 401


def test_secrets_are_not_in_responses_or_logs(
    locked: RunningDashboard, hermes_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    login(locked, "a wrong one")
    login(locked, PASSWORD)
    cookie = next(iter(dict(locked.anonymous.cookies).values()))
    paths = ("/", "/api/models", "/api/nothing", "/metrics", "/openapi.json")
    answers = [locked.client.get(path) for path in paths]
    answers += [locked.anonymous.get(path) for path in paths]
    shown = "".join(f"{response.text}{response.headers}" for response in answers)
    text = (hermes_home / "dashboard-password").read_text().strip()
    files = "".join(path.read_text() for path in (hermes_home / "run").glob("dashboard-*.json"))
    records = [record for record in caplog.records if record.name.startswith(("hermes", "uvicorn"))]
    logged = "".join(our.getMessage() for our in records)
    for secret in (PASSWORD, TOKEN, cookie, text):
        assert secret not in shown
        assert secret not in logged
        assert secret not in files


def test_the_stored_password_hash_is_private_and_salted(hermes_home: Path) -> None:
    file = PasswordFile(hermes_home)
    file.set(PASSWORD)
    first, stamp = file.path.read_text(), file.stamp
    assert first.startswith("scrypt$32768$8$1$")
    assert PASSWORD not in first
    assert file.path.stat().st_mode & 0o777 == 0o600
    file.set(PASSWORD)
    assert file.path.read_text() != first
    assert file.stamp != stamp
    assert file.matches(PASSWORD)
    assert not file.matches(PASSWORD + " ")


@pytest.mark.parametrize("password", ["", "short", "x" * 1025])
def test_the_password_length_is_limited(hermes_home: Path, password: str) -> None:
    with pytest.raises(UsageError, match="8 to 1024"):
        PasswordFile(hermes_home).set(password)


def test_a_damaged_password_file_counts_as_missing(hermes_home: Path) -> None:
    file = PasswordFile(hermes_home)
    for text in ("", "scrypt$1", "md5$1$1$1$YQ==$YQ==", "scrypt$x$8$1$YQ==$YQ=="):
        file.path.write_text(text)
        assert not file.is_set
        assert not file.matches("")


# Time


def test_a_link_expires() -> None:
    clock = ManualClock()
    links = Links(clock)
    token, other = links.create(), links.create()
    clock.advance(LINK_SECONDS - 1)
    assert links.use(token)
    clock.advance(1)
    assert not links.use(other)


def test_a_cookie_expires(hermes_home: Path) -> None:
    clock = ManualClock()
    cookies = Cookies(hermes_home / "run", clock)
    token = cookies.create("")
    clock.advance(COOKIE_SECONDS - 1)
    assert cookies.is_valid(token, "")
    clock.advance(1)
    assert not cookies.is_valid(token, "")


def test_the_number_of_links_is_limited(hermes_home: Path) -> None:
    clock = ManualClock()
    links = Links(clock)
    first = links.create()
    for _ in range(150):
        links.create()
    assert not links.use(first)


def test_failures_expire_after_a_minute() -> None:
    clock = ManualClock()
    limit = LoginRateLimit(clock)
    assert [limit.begin("a") for _ in range(MAX_FAILURES)] == [0.0] * MAX_FAILURES
    assert limit.begin("a") == WINDOW_SECONDS
    assert limit.begin("b") == 0.0
    clock.advance(WINDOW_SECONDS)
    assert limit.begin("a") == 0.0


def test_a_success_clears_the_failures() -> None:
    limit = LoginRateLimit(ManualClock())
    for _ in range(MAX_FAILURES * 3):
        assert limit.begin("a") == 0.0
        limit.succeed("a")


def test_failures_of_all_addresses_are_limited() -> None:
    limit = LoginRateLimit(ManualClock())
    for number in range(MAX_TOTAL_FAILURES):
        assert limit.begin(f"address {number}") == 0.0
    assert limit.begin("one more") > 0


# Open connections at sign-out


@pytest.fixture
def fast_rechecks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "RECHECK_SECONDS", 0.05)


@contextmanager
def open_socket(served: RunningDashboard, **headers: str) -> Iterator[ClientConnection]:
    """A page's WebSocket, connected to the daemon."""
    with connect(
        served.socket_url, additional_headers=headers, origin=served.url, proxy=None
    ) as socket:
        socket.recv(timeout=PATIENCE_SECONDS)
        yield socket


def code_of(socket: ClientConnection) -> int | None:
    """The close code of the socket."""
    with pytest.raises(ConnectionClosed) as caught:
        socket.recv(timeout=PATIENCE_SECONDS)
    return caught.value.rcvd and caught.value.rcvd.code


@contextmanager
def open_stream(served: RunningDashboard, **headers: str) -> Iterator[Iterator[str]]:
    with served.anonymous.stream("GET", "/api/live", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        yield lines


def cookie_of(served: RunningDashboard, stamp: str = "") -> dict[str, str]:
    return {"Cookie": f"{served.access.origins.cookie}={served.access.cookies.create(stamp)}"}


@pytest.mark.usefixtures("fast_rechecks")
def test_sign_out_closes_the_connections_of_that_browser_only(served: RunningDashboard) -> None:
    mine, others = cookie_of(served), cookie_of(served)
    with (
        stopping_daemon(),
        open_socket(served, **mine) as socket,
        open_socket(served, **others) as other,
        open_stream(served, **mine) as lines,
    ):
        leave = served.anonymous.post("/api/auth/logout", headers={**mine, "Origin": served.url})
        assert leave.status_code == 204
        assert code_of(socket) == 4401
        assert not [line for line in lines if line.startswith("event")]
        other.send('{"jsonrpc": "2.0", "id": 5, "method": "session.active_list"}')
        assert '"id":5' in str(other.recv(timeout=PATIENCE_SECONDS)).replace(" ", "")


@pytest.mark.usefixtures("fast_rechecks")
def test_a_new_password_closes_connections(locked: RunningDashboard, hermes_home: Path) -> None:
    own = {"Cookie": login(locked, PASSWORD).headers["set-cookie"].partition(";")[0]}
    with (
        stopping_daemon(),
        open_socket(locked, **own) as socket,
        open_stream(locked, **own) as lines,
    ):
        PasswordFile(hermes_home).set("another password")
        assert code_of(socket) == 4401
        assert not [line for line in lines if line.startswith("event")]


@pytest.mark.usefixtures("fast_rechecks")
def test_a_new_bearer_token_closes_connections(served: RunningDashboard, hermes_home: Path) -> None:
    with stopping_daemon(), open_socket(served, **served.headers) as socket:
        write_atomically(hermes_home / "run" / "dashboard.json", '{"token": "another"}')
        assert code_of(socket) == 4401
