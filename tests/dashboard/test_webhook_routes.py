"""Webhook routes on the page: listed without secrets, requested, changed, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.platforms.registry import PlatformRegistry
from hermes_core.config.file import ConfigFile
from hermes_core.config.webhook_routes import parse_options, route_entries
from support.command_line import run_hermes

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx

ROUTES = "/api/gateway/webhook-routes"
SECRET = "hunter2-hunter2-hunter2"
FILE = """\
# mine
platforms:
  webhook:
    enabled: true  # kept
    routes:
      # deliveries of the CI
      ci:
        prompt: "Look: {payload}"
        per_minute: 10
  telegram: {poll_seconds: 9}
"""


@pytest.fixture
def config(hermes_home: Path) -> Path:
    path = hermes_home / "config.yaml"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


def confirm(answer: httpx.Response) -> str:
    assert (answer.status_code, answer.json()["kind"]) == (202, "webhook_route"), answer.text
    done = run_hermes("dashboard", "confirm", answer.json()["code"], "--yes")
    assert done.code == 0, done.err
    return done.out


def test_a_route_is_written_after_a_confirmation_and_removed(client: httpx.Client) -> None:
    assert client.get(ROUTES).json() == {"items": []}
    body = {
        "name": "reviews",
        "prompt": "Review {title}\nwith: care",
        "secret_env": "REVIEWS_SECRET",
        "secret": SECRET,
        "deliver_url": "https://ada:hunter2@ci.example/answers",
    }
    asked = client.post(ROUTES, json=body)
    assert client.get(ROUTES).json() == {"items": []}
    assert SECRET not in client.get("/api/pending-changes").text
    assert "ada:" not in asked.text
    shown = confirm(asked)
    assert ("webhook route reviews" in shown, SECRET in shown) == (True, False)
    (route,) = client.get(ROUTES).json()["items"]
    assert (route["path"], route["has_secret"], route["problem"]) == ("/webhooks/reviews", True, "")
    assert (route["prompt"], route["per_minute"]) == (body["prompt"], 30)
    assert "hunter2" not in client.get(ROUTES).text
    stored = parse_options(route_entries(ConfigFile.of_home())["reviews"])
    assert stored.deliver_url == body["deliver_url"]
    assert ConfigFile.of_home().variables()["REVIEWS_SECRET"] == SECRET
    assert client.delete(f"{ROUTES}/reviews").status_code == 204
    assert client.delete(f"{ROUTES}/reviews").status_code == 404
    assert ConfigFile.of_home().block("platforms") == {}


def test_the_gateway_accepts_what_was_confirmed(client: httpx.Client) -> None:
    confirm(client.post(ROUTES, json={"name": "a-1", "prompt": "x", "secret": SECRET}))
    forms = client.get("/api/gateway/platforms").json()["items"]
    (webhook,) = [form for form in forms if form["name"] == "webhook"]
    assert (webhook["is_enabled"], webhook["missing"]) == (True, "")
    assert PlatformRegistry.of_home().get("webhook") is not None
    assert run_hermes("config", "check").code == 0


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "Delete {payload}"},
        {"deliver_url": "https://evil.example"},
        {"secret_env": "OTHER_SECRET"},
        {"secret": SECRET},
        {"chat": "fixed"},
        {"per_minute": 11},
    ],
)
def test_a_change_that_grants_something_waits_for_a_terminal(
    client: httpx.Client, config: Path, change: dict[str, object]
) -> None:
    asked = client.put(f"{ROUTES}/ci", json=change)
    assert config.read_text() == FILE
    confirm(asked)
    (route,) = client.get(ROUTES).json()["items"]
    assert all(route[name] == value for name, value in change.items() if name != "secret")


def test_a_change_that_takes_something_is_written_at_once(
    client: httpx.Client, config: Path
) -> None:
    changed = client.put(f"{ROUTES}/ci", json={"per_minute": 5, "needs_timestamp": True})
    assert (changed.status_code, changed.json()["per_minute"]) == (200, 5), changed.text
    text = config.read_text()
    for kept in ("# mine", "enabled: true  # kept", "# deliveries of the CI", "poll_seconds: 9"):
        assert kept in text
    relaxed = client.put(f"{ROUTES}/ci", json={"needs_timestamp": False})
    assert relaxed.status_code == 202
    assert client.delete(f"{ROUTES}/ci").status_code == 204
    assert "enabled: true  # kept" in config.read_text()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "a/b"}, "name"),
        ({"name": "ci"}, "name"),
        ({"prompt": "  "}, "prompt"),
        ({"prompt": "a\x01b"}, "prompt"),
        ({"deliver_url": "file:///etc/passwd"}, "deliver_url"),
        ({"secret_env": "ANTHROPIC_API_KEY"}, "secret_env"),
        ({"secret_env": "TELEGRAM_WEBHOOK_SECRET"}, "secret_env"),
        ({"secret_env": "PATH", "secret": SECRET}, "secret_env"),
        ({"secret": "short"}, "secret"),
        ({"per_minute": 0}, "per_minute"),
        ({"per_minute": 10**9}, "per_minute"),
    ],
)
def test_a_refusal_names_the_field(
    client: httpx.Client, config: Path, fields: dict[str, object], field: str
) -> None:
    answer = client.post(ROUTES, json={"name": "new", "prompt": "x", **fields})
    assert (answer.status_code, answer.json().get("field")) == (400, field), answer.text
    assert client.get("/api/pending-changes").json()["items"] == []
    assert config.read_text() == FILE


def test_an_invalid_route_of_the_file_is_shown_and_can_be_removed(
    client: httpx.Client, config: Path
) -> None:
    config.write_text("platforms: {webhook: {routes: {odd: {promt: x}, fine: {prompt: y}}}}\n")
    odd, fine = client.get(ROUTES).json()["items"]
    assert ("allowed keys" in odd["problem"], fine["problem"]) == (True, "")
    assert client.put(f"{ROUTES}/odd", json={"per_minute": 1}).status_code == 400
    assert client.delete(f"{ROUTES}/odd").status_code == 204
    assert [each["name"] for each in client.get(ROUTES).json()["items"]] == ["fine"]


def test_a_url_with_a_hidden_password_is_not_stored(client: httpx.Client, config: Path) -> None:
    url = "https://ada:hunter2@ci.example/answers"
    config.write_text(FILE.replace("per_minute: 10", f"deliver: {{url: '{url}'}}"))
    shown = client.get(ROUTES).json()["items"][0]["deliver_url"]
    assert shown == "https://…@ci.example/answers"
    answer = client.put(f"{ROUTES}/ci", json={"deliver_url": shown.replace("answers", "others")})
    assert (answer.status_code, answer.json()["field"]) == (400, "deliver_url")
    assert "Enter the user and the password of the URL again." in answer.json()["detail"]
