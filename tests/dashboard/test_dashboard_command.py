"""`hermes dashboard` as a real process on a real port."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pexpect
import pytest

from hermes_core.config.file import ConfigFile
from hermes_core.instance_record import DASHBOARD, InstanceRecord
from hermes_dashboard.auth.passwords import PasswordFile
from support.command_line import DASHBOARD_MODULES, command, start_program
from support.terminal import spawn
from support.waiting import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import Hermes

ANYWHERE = "0.0.0.0"  # noqa: S104 - the address under test
PASSWORD = "correct horse battery"


class Started:
    """A dashboard process."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        out, err = os.pipe(), os.pipe()
        self._out, self._err = os.fdopen(out[0]), os.fdopen(err[0])
        streams = (out[1], err[1])
        try:
            self.process = start_program(
                "hermes_cli",
                *("dashboard", "--no-open", "--port", "0", *arguments),
                streams=streams,
                preloaded=DASHBOARD_MODULES,
            )
        finally:
            for descriptor in streams:
                os.close(descriptor)

    @property
    def record(self) -> InstanceRecord:
        wait_until(lambda: DASHBOARD.find(self.home) or self.process.poll() is not None)
        result = DASHBOARD.find(self.home)
        assert result is not None
        return result

    def first_line(self) -> str:
        return self._out.readline().strip()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        return code, self._out.read(), self._err.read()

    def close(self) -> None:
        """End the process, if it still runs."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE_SECONDS)
        self._out.close()
        self._err.close()


@contextmanager
def started(home: Path, *arguments: str) -> Iterator[Started]:
    running = Started(home, *arguments)
    try:
        yield running
    finally:
        running.close()


def sign_in(link: str) -> httpx.Client:
    url, _, token = link.partition("/#token=")
    client = httpx.Client(base_url=url, trust_env=False, headers={"Origin": url})
    response = client.post("/api/auth/launch", json={"token": token})
    assert response.status_code == 204, response.text
    return client


def test_the_printed_link_signs_in(hermes_home: Path) -> None:
    with started(hermes_home) as running:
        link = running.first_line()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", link)
        with closing(sign_in(link)) as client:
            assert client.get("/api/models").status_code == 200
            assert "Hermes" in client.get("/").text
        code, out, err = running.end()
        assert code == 0
        assert out == ""
        assert "Traceback" not in err
    token = link.partition("#token=")[2]
    for path in hermes_home.rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_while_pages_are_connected(hermes_home: Path, number: int) -> None:
    with started(hermes_home) as running, closing(sign_in(running.first_line())) as client:
        request = client.build_request("GET", "/api/live")
        stream = client.send(request, stream=True)
        lines = stream.iter_lines()
        assert next(lines) == "event: hello"
        code, _, err = running.end(number)
        assert code == 0
        assert "Traceback" not in err
        stream.close()
    assert not (hermes_home / "run" / "dashboard.json").exists()
    assert DASHBOARD.find(hermes_home) is None


def test_the_instance_record_is_readable_by_its_owner_only(hermes_home: Path) -> None:
    with started(hermes_home) as running:
        record = running.record
        path = hermes_home / "run" / "dashboard.json"
        assert path.stat().st_mode & 0o777 == 0o600
        headers = {"Authorization": f"Bearer {record.token}"}
        response = httpx.get(f"{record.url}/metrics", headers=headers, trust_env=False)
        assert response.status_code == 200


def test_a_second_start_prints_a_new_link_to_the_running_instance(
    hermes_home: Path, hermes: Hermes
) -> None:
    with started(hermes_home) as running:
        first = running.first_line()
        again = hermes("dashboard", "--no-open")
        assert again.code == 0
        assert "already running" in again.err
        link = hermes("dashboard", "--link")
        assert link.err == ""
        status_json: dict[str, Any] = json.loads(hermes("dashboard", "--link", "--json").out)
        assert status_json["pid"] == running.process.pid
        links = {first, again.out.strip(), link.out.strip(), status_json["link"]}
        assert len(links) == 4
        for url in links:
            sign_in(url).close()


def test_a_second_start_reports_ignored_options(hermes_home: Path, hermes: Hermes) -> None:
    with started(hermes_home, "--json") as running:
        url = json.loads(running.first_line())["url"]
        port = url.rpartition(":")[2]
        for options in (("--port", "1"), ("--host", "192.0.2.1"), ("--host", "0.0.0.0")):  # noqa: S104
            again = hermes("dashboard", "--no-open", *options)
            assert again.code == 0
            assert url in again.err
            assert "have no effect" in again.err
            assert "#token=" in again.out
        for options in ((), ("--port", port), ("--host", "localhost"), ("--port", "0")):
            assert "have no effect" not in hermes("dashboard", "--no-open", *options).err


def test_status_and_stop(hermes_home: Path, hermes: Hermes) -> None:
    assert "dashboard is not running" in hermes("dashboard", "--status").out
    assert json.loads(hermes("dashboard", "--status", "--json").out) == {"running": False}
    assert "dashboard is not running" in hermes("dashboard", "--stop").out
    nothing = hermes("dashboard", "--link")
    assert nothing.code == 2
    assert "hermes dashboard" in nothing.err
    with started(hermes_home, "--json") as running:
        status_json = json.loads(running.first_line())
        status = json.loads(hermes("dashboard", "--status", "--json").out)
        assert status["running"]
        assert status["url"] == status_json["url"]
        assert "token" not in hermes("dashboard", "--status").out
        assert "stopped" in hermes("dashboard", "--stop").out
        running.process.wait(timeout=PATIENCE_SECONDS)
        assert running.process.returncode == 0


def test_a_new_instance_starts_after_a_kill(hermes_home: Path) -> None:
    with started(hermes_home) as running:
        running.first_line()
        running.end(signal.SIGKILL)
    assert DASHBOARD.find(hermes_home) is None
    with started(hermes_home) as running:
        sign_in(running.first_line()).close()


def test_a_port_in_use_is_an_error(hermes: Hermes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = hermes("dashboard", "--no-open", "--port", str(port))
    assert done.code == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in done.err
    assert "--port" in done.err
    assert hermes("dashboard", "--no-open", "--port", "70000").code == 2


def test_remote_access_requires_a_password(hermes: Hermes, hermes_home: Path) -> None:
    for host in (ANYWHERE, "::", "192.0.2.7", "machine.example"):
        done = hermes("dashboard", "--no-open", "--host", host)
        assert done.code == 2
        assert "`hermes dashboard password`" in done.err
    ConfigFile.of_home().set("dashboard.host", ANYWHERE)
    assert hermes("dashboard", "--no-open").code == 2
    assert hermes("dashboard", "--insecure").code == 2


def test_remote_access_with_a_password_warns_about_missing_tls(hermes_home: Path) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    with started(hermes_home, "--host", ANYWHERE) as running:
        link = running.first_line()
        assert link.startswith("http://localhost:")
        assert "token" not in link
        port = link.rstrip("/").rpartition(":")[2]
        url = f"http://127.0.0.1:{port}"
        own = {"Origin": url}
        with httpx.Client(base_url=url, trust_env=False) as client:
            assert client.get("/api/models").json()["login"] == "password"
            body = {"password": PASSWORD}
            assert client.post("/api/auth/login", json=body, headers=own).status_code == 204
            assert client.get("/api/models").status_code == 200
        code, _, err = running.end()
        assert code == 0
        assert "without TLS" in err
        assert "dashboard.hosts" in err


def test_it_serves_tls(hermes_home: Path, tmp_path: Path, hermes: Hermes) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    created = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)],
        capture_output=True, check=False,
    )  # fmt: skip
    if created.returncode:
        pytest.skip("openssl is not installed")
    config = ConfigFile.of_home()
    config.set("dashboard.tls_cert", str(certificate))
    half = hermes("dashboard", "--no-open", "--port", "0")
    assert half.code == 2
    assert "set both" in half.err
    config.set("dashboard.tls_key", str(key))
    with started(hermes_home) as running:
        assert running.first_line().startswith("https://127.0.0.1:")
        link = hermes("dashboard", "--link").out.strip()
        url, _, token = link.partition("/#token=")
        with httpx.Client(base_url=url, verify=False, trust_env=False) as client:
            response = client.post("/api/auth/launch", json={"token": token})
            assert response.status_code == 204
            assert "secure" in response.headers["set-cookie"].lower()
            assert client.get("/api/models").status_code == 200
        assert running.end()[0] == 0


def test_a_missing_certificate_is_an_error(hermes: Hermes) -> None:
    config = ConfigFile.of_home()
    config.set("dashboard.tls_cert", "/nowhere/cert.pem")
    config.set("dashboard.tls_key", "/nowhere/key.pem")
    done = hermes("dashboard", "--no-open", "--port", "0")
    assert done.code == 2
    assert "/nowhere/cert.pem" in done.err


# The password


def test_the_password_comes_from_a_pipe(hermes_home: Path) -> None:
    done = subprocess.run(
        command("dashboard", "password"), input=f"{PASSWORD}\n", capture_output=True, text=True,
        check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert PASSWORD not in done.stdout + done.stderr
    assert PasswordFile(hermes_home).matches(PASSWORD)


def test_the_password_is_asked_for_twice_and_not_shown(hermes_home: Path) -> None:
    for second, code in (("something else", 2), (PASSWORD, 0)):
        typing = spawn("dashboard", "password")
        typing.expect("New password: ")
        typing.sendline(PASSWORD)
        typing.expect("Repeat the password: ")
        typing.sendline(second)
        typing.expect(pexpect.EOF)
        assert PASSWORD not in typing.before
        typing.close()
        assert typing.exitstatus == code
        assert PasswordFile(hermes_home).is_set == (code == 0)


def test_the_password_can_be_removed(hermes_home: Path, hermes: Hermes) -> None:
    PasswordFile(hermes_home).set(PASSWORD)
    assert "Password removed" in hermes("dashboard", "password", "--remove").out
    assert not PasswordFile(hermes_home).is_set
    assert "No password was set" in hermes("dashboard", "password", "--remove").out


def test_a_short_password_is_refused() -> None:
    done = subprocess.run(
        command("dashboard", "password"), input="short\n", capture_output=True, text=True,
        check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert "8 to 1024" in done.stderr


def test_no_browser_is_opened_without_a_display(hermes_home: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    plain = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    for display in ({}, {"DISPLAY": ":0"}):
        environment = {**plain, "BROWSER": str(browser), **display}
        process = subprocess.Popen(
            command("dashboard", "--port", "0"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            if display:
                wait_until(lambda: opened.exists() and opened.read_text().strip())
                # Other users of the machine can read the arguments of a process.
                address = opened.read_text().strip()
                assert link.partition("#")[2] not in address
                page = Path(address.removeprefix("file://"))
                assert stat.S_IMODE(page.stat().st_mode) == 0o600
                assert link in page.read_text()
            else:
                httpx.get(link, trust_env=False)
                assert not opened.exists()
            process.terminate()
