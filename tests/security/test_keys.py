"""A key goes to the host it was given for, and to no other, whatever a URL looks like."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from hermes_agent.providers import selection
from hermes_agent.providers.apis import OPENAI_API
from hermes_core.config.file import ConfigFile
from hermes_core.errors import ConfigError
from security.conftest import CanaryHome, run_in_mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.command_line import Hermes

KEY = "sk-canary-7d20"


class HostileServer:
    """Records the headers of every request, and answers none properly."""

    def __init__(self) -> None:
        headers: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def record(self) -> None:
                headers.append(str(self.headers))
                self.send_error(404)

            do_GET = record  # noqa: N815 - the name that the server calls
            do_POST = record  # noqa: N815 - as above

            def log_message(self, *_args: object) -> None:
                """Nothing."""

        self.headers = headers
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def hostile() -> Iterator[HostileServer]:
    server = HostileServer()
    thread = threading.Thread(target=server.server.serve_forever)
    thread.start()
    yield server
    server.server.shutdown()
    thread.join()
    server.server.server_close()


@pytest.mark.parametrize(
    "url",
    [
        "http://{address}/api.openai.com/v1#x",
        "http://{address}/v1?api.openai.com#x",
        "http://api.openai.com@{address}/v1#x",
        "http://{address}/openrouter.ai/api/v1#x",
        "http://{address}/v1#x",
    ],
)
def test_a_url_that_mentions_a_provider_gets_no_key(
    hermes: Hermes, hostile: HostileServer, url: str
) -> None:
    config = ConfigFile.of_home()
    for name in ("keys.openai", "keys.openrouter", "keys.anthropic", "llm.key"):
        config.set(name, KEY)
    config.set("llm.base_url", "https://models.example/v1")
    hermes("chat", "--model", url.format(address=hostile.address), "-q", "hi")
    assert hostile.headers
    assert not any(KEY in headers for headers in hostile.headers)


def test_the_key_of_an_own_endpoint_goes_there(hermes: Hermes, hostile: HostileServer) -> None:
    config = ConfigFile.of_home()
    config.set("llm.key", KEY)
    config.set("llm.base_url", f"http://{hostile.address}/v1")
    config.set("llm.model", "x")
    hermes("chat", "-q", "hi")
    assert any(KEY in headers for headers in hostile.headers)


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "keys.openai"),
        ("https://api.openai.com:443/v1", "keys.openai"),
        ("https://openrouter.ai/api/v1", "keys.openrouter"),
        ("http://api.openai.com/v1", "llm.key"),
        ("https://api.openai.com.evil.example/v1", "llm.key"),
        ("https://evil.example/api.openai.com", "llm.key"),
        ("https://api.openai.com:8443/v1", "llm.key"),
    ],
)
def test_a_provider_is_known_by_its_host(base_url: str, name: str) -> None:
    assert selection.key_name(OPENAI_API, base_url) == name


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        ("gpt-5", True),
        ("anthropic:claude", True),
        ("https://models.example/v1#m", True),
        ("http://127.0.0.1:11434/v1#llama", True),
        ("https://models.example.evil.example/v1#m", False),
        ("https://models.example:444/v1#m", False),
        ("http://models.example/v1#m", False),
        ("https://models.example@evil.example/v1#m", False),
        ("http://127.0.0.1:9/v1#m", False),
        ("https://[::1#m", False),
    ],
)
def test_a_page_or_a_chat_names_only_configured_endpoints(name: str, is_allowed: bool) -> None:
    config = ConfigFile.of_home()
    config.set("llm.base_url", "https://models.example/v1")
    if is_allowed:
        selection.require_configured_url(config.settings(), name)
    else:
        with pytest.raises(ConfigError, match="not a configured endpoint"):
            selection.require_configured_url(config.settings(), name)


def test_commands_of_the_owner_get_no_variables_that_look_like_secrets(
    canary: CanaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "GITHUB_TOKEN": "t-11", "PGPASSWORD": "t-12", "AWS_SECRET_ACCESS_KEY": "t-13",
        "DATABASE_URL": "postgresql://me:t-14@db/x", "STRANGE": "ghp_" + "t14" * 12,
        "SMTP_PASS": "t-15", "AUTHORIZATION": "t-16", "PAYMENTS": "sk_live_" + "t17" * 8,
        "ALERTS": "https://hooks.slack.com/services/T0/B0/t18", "HEADER": "X: Bearer t19t19t19",
        "MAPS": "AIza" + "t20" * 12, "BLOBS": "AccountName=a;AccountKey=t21==",
        "MIRROR": "https://mirror.example/simple?token=t22",
    }  # fmt: skip
    kept = {
        "TOKENIZERS_PARALLELISM": "false",
        "DATABASE_HOST": "db",
        "EDITOR": "vi",
        "HOMEPAGE": "https://example.org/a:b@c?page=2",
    }
    for name, value in (secrets | kept).items():
        monkeypatch.setenv(name, value)
    (result,) = run_in_mode(canary, "workspace", "env")
    names = {line.partition("=")[0] for line in result["output"].splitlines()}
    assert not names & set(secrets)
    assert {*kept, "PATH", "HOME"} <= names
    ConfigFile.of_home().set("agent.environment", "[GITHUB_TOKEN, 'PG*']")
    (result,) = run_in_mode(canary, "workspace", "env")
    names = {line.partition("=")[0] for line in result["output"].splitlines()}
    assert names & set(secrets) == {"GITHUB_TOKEN", "PGPASSWORD"}
