"""Getting in: links that work once, the password, and getting out."""

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
from hermes_core.errors import UsageError
from hermes_dashboard.auth import gate
from hermes_dashboard.auth.access import MAX_FAILURES, MAX_TOGETHER, WINDOW_SECONDS, Rates
from hermes_dashboard.auth.passwords import PasswordFile
from hermes_dashboard.auth.tokens import COOKIE_SECONDS, LINK_SECONDS, Cookies, Links
from support.daemons import ending
from support.dashboards import TOKEN, dashboard, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2 as httpx
    from websockets.sync.client import ClientConnection

    from hermes_state import SessionDB
    from support.dashboards import Served

PASSWORD = "correct horse battery"


@pytest.fixture
def locked(db: SessionDB, hermes_home: Path) -> Iterator[Served]:
    """A dashboard that asks for a password."""
    PasswordFile(hermes_home).set(PASSWORD)
    with dashboard(parts_of(db), host="192.0.2.7") as found:
        yield found


def launch(served: Served, token: str) -> httpx.Response:
    own = {"Origin": served.url}
    return served.stranger.post("/api/auth/launch", json={"token": token}, headers=own)


def login(served: Served, password: str) -> httpx.Response:
    own = {"Origin": served.url}
    return served.stranger.post("/api/auth/login", json={"password": password}, headers=own)


def token_of(link: str) -> str:
    address, _, token = link.partition("#token=")
    assert address.endswith("/")
    return token


def test_a_link_lets_one_in_once(served: Served) -> None:
    link = served.client.post("/api/auth/links").json()["url"]
    assert link.startswith(f"{served.url}/#token=")
    assert launch(served, token_of(link)).status_code == 204
    assert served.stranger.get("/api/models").status_code == 200
    again = launch(served, token_of(link))
    assert again.status_code == 401
    assert again.json()["login"] == "link"
    assert "hermes dashboard" in again.json()["detail"]


def test_a_link_that_nobody_made_lets_nobody_in(served: Served) -> None:
    assert launch(served, "x" * 43).status_code == 401
    assert launch(served, "").status_code == 401
    assert launch(served, TOKEN).status_code == 401
    assert launch(served, "x" * 1000).status_code == 422


def test_the_cookie_is_out_of_reach_for_scripts_and_other_pages(served: Served) -> None:
    answer = launch(served, token_of(served.access.link()))
    cookie = SimpleCookie(answer.headers["set-cookie"])[served.access.doors.cookie]
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "strict"
    assert cookie["path"] == "/"
    assert not cookie["domain"]
    assert int(cookie["max-age"]) == 30 * 24 * 3600
    assert not cookie["secure"]  # there is no TLS here
    assert answer.content == b""


def test_behind_a_proxy_with_tls_the_cookie_is_secure(db: SessionDB, hermes_home: Path) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    names = ("https://hermes.example.org",)
    with dashboard(parts_of(db), host="192.0.2.7", names=names) as served:
        headers = {"Host": "hermes.example.org", "Origin": names[0]}
        answer = served.stranger.post(
            "/api/auth/login", json={"password": PASSWORD}, headers=headers
        )
        assert answer.status_code == 204
        assert "secure" in answer.headers["set-cookie"].lower()


def test_logging_out_ends_it(served: Served) -> None:
    launch(served, token_of(served.access.link()))
    own = {"Origin": served.url}
    kept = dict(served.stranger.cookies)
    assert served.stranger.post("/api/auth/logout", headers=own).status_code == 204
    assert not dict(served.stranger.cookies)
    line = "; ".join(f"{name}={value}" for name, value in kept.items())
    assert served.stranger.get("/api/models", headers={"Cookie": line}).status_code == 401


def test_a_restart_logs_nobody_out(db: SessionDB) -> None:
    with dashboard(parts_of(db)) as first:
        word = first.access.cookies.make("")
    with dashboard(parts_of(db)) as second:
        line = f"{second.access.doors.cookie}={word}"
        assert second.stranger.get("/api/models", headers={"Cookie": line}).status_code == 200


def test_a_page_makes_no_links(served: Served) -> None:
    launch(served, token_of(served.access.link()))
    own = {"Origin": served.url}
    assert served.stranger.post("/api/auth/links", headers=own).status_code == 403


# The password


def test_the_password_lets_one_in(locked: Served) -> None:
    assert locked.stranger.get("/api/models").json()["login"] == "password"
    wrong = login(locked, "wrong horse battery")
    assert wrong.status_code == 401
    assert wrong.json()["login"] == "password"
    assert login(locked, PASSWORD).status_code == 204
    assert locked.stranger.get("/api/models").status_code == 200


def test_links_do_not_open_what_a_password_locks(locked: Served) -> None:
    assert launch(locked, locked.access.links.make()).status_code == 401
    assert "token" not in locked.client.post("/api/auth/links").json()["url"]


def test_a_password_does_not_open_what_links_open(served: Served, hermes_home: Path) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    answer = login(served, PASSWORD)
    assert answer.status_code == 401
    assert answer.json()["login"] == "link"


def test_guessing_is_slowed_down(locked: Served) -> None:
    for _ in range(5):
        assert login(locked, "a wrong one").status_code == 401
    stopped = login(locked, PASSWORD)
    assert stopped.status_code == 429
    assert 1 <= int(stopped.headers["retry-after"]) <= 60


def test_a_changed_password_logs_everybody_out(locked: Served, hermes_home: Path) -> None:
    login(locked, PASSWORD)
    assert locked.stranger.get("/api/models").status_code == 200
    PasswordFile(hermes_home).set("another horse")
    assert locked.stranger.get("/api/models").status_code == 401
    assert login(locked, PASSWORD).status_code == 401
    assert login(locked, "another horse").status_code == 204


def test_without_a_password_nobody_logs_in(locked: Served, hermes_home: Path) -> None:
    assert PasswordFile(hermes_home).remove()
    assert login(locked, "").status_code == 401
    assert login(locked, PASSWORD).status_code == 401


def test_no_secret_is_in_an_answer_or_in_the_log(
    locked: Served, hermes_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    login(locked, "a wrong one")
    login(locked, PASSWORD)
    cookie = next(iter(dict(locked.stranger.cookies).values()))
    paths = ("/", "/api/models", "/api/nothing", "/metrics", "/openapi.json")
    answers = [locked.client.get(path) for path in paths]
    answers += [locked.stranger.get(path) for path in paths]
    shown = "".join(f"{one.text}{one.headers}" for one in answers)
    kept = (hermes_home / "dashboard-password").read_text().strip()
    files = "".join(one.read_text() for one in (hermes_home / "run").glob("dashboard-*.json"))
    ours = [one for one in caplog.records if one.name.startswith(("hermes", "uvicorn"))]
    noted = "".join(one.getMessage() for one in ours)
    for secret in (PASSWORD, TOKEN, cookie, kept):
        assert secret not in shown
        assert secret not in noted
        assert secret not in files


def test_what_is_kept_of_a_password_is_private_and_salted(hermes_home: Path) -> None:
    file = PasswordFile(hermes_home)
    file.set(PASSWORD)
    first, stamp = file.path.read_text(), file.stamp
    assert first.startswith("scrypt$32768$8$1$")
    assert PASSWORD not in first
    assert file.path.stat().st_mode & 0o777 == 0o600
    file.set(PASSWORD)
    assert file.path.read_text() != first
    assert file.stamp != stamp
    assert file.fits(PASSWORD)
    assert not file.fits(PASSWORD + " ")


@pytest.mark.parametrize("password", ["", "short", "x" * 1025])
def test_a_password_has_a_fitting_length(hermes_home: Path, password: str) -> None:
    with pytest.raises(UsageError, match="8 to 1024"):
        PasswordFile(hermes_home).set(password)


def test_a_damaged_password_file_counts_as_none(hermes_home: Path) -> None:
    file = PasswordFile(hermes_home)
    for text in ("", "scrypt$1", "md5$1$1$1$YQ==$YQ==", "scrypt$x$8$1$YQ==$YQ=="):
        file.path.write_text(text)
        assert not file.is_set
        assert not file.fits("")


# Time


def test_a_link_gets_too_old() -> None:
    clock = ManualClock()
    links = Links(clock)
    word, other = links.make(), links.make()
    clock.advance(LINK_SECONDS - 1)
    assert links.use(word)
    clock.advance(1)
    assert not links.use(other)


def test_a_cookie_gets_too_old(hermes_home: Path) -> None:
    clock = ManualClock()
    cookies = Cookies(hermes_home / "run", clock)
    word = cookies.make("")
    clock.advance(COOKIE_SECONDS - 1)
    assert cookies.is_good(word, "")
    clock.advance(1)
    assert not cookies.is_good(word, "")


def test_links_and_cookies_do_not_pile_up(hermes_home: Path) -> None:
    clock = ManualClock()
    links = Links(clock)
    first = links.make()
    for _ in range(150):
        links.make()
    assert not links.use(first)


def test_guesses_are_forgotten_after_a_minute() -> None:
    clock = ManualClock()
    rates = Rates(clock)
    assert [rates.begin("a") for _ in range(MAX_FAILURES)] == [0.0] * MAX_FAILURES
    assert rates.begin("a") == WINDOW_SECONDS
    assert rates.begin("b") == 0.0
    clock.advance(WINDOW_SECONDS)
    assert rates.begin("a") == 0.0


def test_a_right_guess_is_held_against_nobody() -> None:
    rates = Rates(ManualClock())
    for _ in range(MAX_FAILURES * 3):
        assert rates.begin("a") == 0.0
        rates.succeed("a")


def test_many_addresses_together_are_slowed_down_too() -> None:
    rates = Rates(ManualClock())
    for number in range(MAX_TOGETHER):
        assert rates.begin(f"address {number}") == 0.0
    assert rates.begin("one more") > 0


# Connections that are open when somebody leaves


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "AGAIN_SECONDS", 0.05)


@contextmanager
def talking(served: Served, **headers: str) -> Iterator[ClientConnection]:
    """The socket of a page, with the daemon behind it."""
    with connect(
        served.socket_url, additional_headers=headers, origin=served.url, proxy=None
    ) as socket:
        socket.recv(timeout=60)
        yield socket


def code_of(socket: ClientConnection) -> int | None:
    """With which code it is closed."""
    with pytest.raises(ConnectionClosed) as caught:
        socket.recv(timeout=60)
    return caught.value.rcvd and caught.value.rcvd.code


@contextmanager
def hearing(served: Served, **headers: str) -> Iterator[Iterator[str]]:
    with served.stranger.stream("GET", "/api/live", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        yield lines


def cookie_of(served: Served, stamp: str = "") -> dict[str, str]:
    return {"Cookie": f"{served.access.doors.cookie}={served.access.cookies.make(stamp)}"}


@pytest.mark.usefixtures("quick_looks")
def test_a_logout_ends_the_connections_of_that_browser_and_no_others(served: Served) -> None:
    mine, others = cookie_of(served), cookie_of(served)
    with (
        ending(),
        talking(served, **mine) as socket,
        talking(served, **others) as other,
        hearing(served, **mine) as lines,
    ):
        leave = served.stranger.post("/api/auth/logout", headers={**mine, "Origin": served.url})
        assert leave.status_code == 204
        assert code_of(socket) == 4401
        assert not [one for one in lines if one.startswith("event")]
        other.send('{"jsonrpc": "2.0", "id": 5, "method": "session.active_list"}')
        assert '"id":5' in str(other.recv(timeout=60)).replace(" ", "")


@pytest.mark.usefixtures("quick_looks")
def test_a_new_password_ends_connections(locked: Served, hermes_home: Path) -> None:
    own = {"Cookie": login(locked, PASSWORD).headers["set-cookie"].partition(";")[0]}
    with ending(), talking(locked, **own) as socket, hearing(locked, **own) as lines:
        PasswordFile(hermes_home).set("another password")
        assert code_of(socket) == 4401
        assert not [one for one in lines if one.startswith("event")]


@pytest.mark.usefixtures("quick_looks")
def test_a_new_word_for_programs_ends_their_connections(served: Served, hermes_home: Path) -> None:
    with ending(), talking(served, **served.headers) as socket:
        write_atomically(hermes_home / "run" / "dashboard.json", '{"token": "another"}')
        assert code_of(socket) == 4401
