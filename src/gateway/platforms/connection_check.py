"""Signs in to a platform with the stored credentials, without receiving or sending anything.

A bot that is connected stays so: only the account is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gateway import config_values
from gateway.platforms.registry import find_missing
from gateway.process.config_loader import Secrets, config_of_home, platform_config
from hermes_core.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import PlatformConfig
    from gateway.platforms.registry import PlatformEntry
    from hermes_core.json_values import JsonObject

TIMEOUT_SECONDS: Final = 15.0
TELEGRAM_URL: Final = "https://api.telegram.org"
DISCORD_URL: Final = "https://discord.com/api/v10"
SLACK_URL: Final = "https://slack.com/api"
REJECTED: Final = "{host} rejected the credentials ({reason})."


class ConnectionCheck(NamedTuple):
    """The account, or why the sign-in failed."""

    is_ok: bool
    detail: str


class _Request(NamedTuple):
    """A request for the own account."""

    url: str
    headers: dict[str, str]
    hidden: str  # part of the URL that must not be shown


def can_check(name: str) -> bool:
    """Whether the connection of a platform can be tested."""
    return name in _REQUESTS or name == "email"


def check_connection(entry: PlatformEntry) -> ConnectionCheck:
    """Sign in to a platform; nothing is changed there."""
    secrets = Secrets()
    missing = find_missing(entry, secrets)
    if missing:
        return ConnectionCheck(False, missing)
    config = platform_config(config_of_home(), entry.name)
    if entry.name == "email":
        return _check_mailbox(config, secrets)
    return _check_account(_REQUESTS[entry.name](config, secrets))


def _check_account(request: _Request) -> ConnectionCheck:
    import httpx2  # noqa: PLC0415 - only a test needs it

    try:
        response = httpx2.get(request.url, headers=request.headers, timeout=TIMEOUT_SECONDS)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        text = str(error) or type(error).__name__
        return ConnectionCheck(False, f"Cannot reach the server: {_hide(text, request.hidden)}")
    host = response.url.host
    try:
        answer: JsonObject = config_values.mapping(response.json())
    except ValueError:
        answer = {}
    account = _account(answer)
    if response.status_code in {401, 403, 404} or answer.get("ok") is False:
        reason = answer.get("error") or answer.get("description") or f"HTTP {response.status_code}"
        return ConnectionCheck(False, REJECTED.format(host=host, reason=reason))
    if not response.is_success or not account:
        return ConnectionCheck(
            False, f"Unexpected response from {host}: HTTP {response.status_code}."
        )
    return ConnectionCheck(True, f"Connected as {account}.")


def _account(answer: JsonObject) -> str:
    result = config_values.mapping(answer.get("result")) or answer
    for key in ("username", "user_id", "user", "id"):
        if result.get(key):
            return str(result[key])
    return ""


def _hide(text: str, hidden: str) -> str:
    return text.replace(hidden, "…") if hidden else text


def _base(config: PlatformConfig, default: str) -> str:
    return (config_values.text(config.extra.get("base_url")) or default).rstrip("/")


def _telegram(config: PlatformConfig, secret: Secrets) -> _Request:
    token = secret("TELEGRAM_BOT_TOKEN")
    return _Request(f"{_base(config, TELEGRAM_URL)}/bot{token}/getMe", {}, token)


def _discord(config: PlatformConfig, secret: Secrets) -> _Request:
    headers = {"Authorization": f"Bot {secret('DISCORD_BOT_TOKEN')}"}
    return _Request(f"{_base(config, DISCORD_URL)}/users/@me", headers, "")


def _slack(config: PlatformConfig, secret: Secrets) -> _Request:
    headers = {"Authorization": f"Bearer {secret('SLACK_BOT_TOKEN')}"}
    return _Request(f"{_base(config, SLACK_URL)}/auth.test", headers, "")


def _matrix(_config: PlatformConfig, secret: Secrets) -> _Request:
    configured = secret("MATRIX_HOMESERVER").rstrip("/")
    base = configured if "://" in configured else f"https://{configured}"
    headers = {"Authorization": f"Bearer {secret('MATRIX_ACCESS_TOKEN')}"}
    return _Request(f"{base}/_matrix/client/v3/account/whoami", headers, "")


_REQUESTS: Final[dict[str, Callable[[PlatformConfig, Secrets], _Request]]] = {
    "telegram": _telegram,
    "matrix": _matrix,
    "discord": _discord,
    "slack": _slack,
}


def _check_mailbox(config: PlatformConfig, secrets: Secrets) -> ConnectionCheck:
    from gateway.platforms.email.mailbox import Mailbox  # noqa: PLC0415 - needs its library
    from gateway.platforms.email.settings import read_settings  # noqa: PLC0415 - as above
    from gateway.platforms.email.smtp import SmtpSender  # noqa: PLC0415 - as above

    try:
        settings = read_settings(config, secrets)
        mailbox = Mailbox(settings)
        mailbox.open()
        mailbox.close()
        SmtpSender(settings).check()
    except PlatformError as error:
        return ConnectionCheck(False, str(error))
    return ConnectionCheck(True, f"Signed in to {settings.imap.host} and {settings.smtp.host}.")
