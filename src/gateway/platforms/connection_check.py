"""Signs in to a platform with the stored credentials, without receiving or sending anything.

A bot that is connected stays so: only the account is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway import config_values
from gateway.process.config_loader import Secrets, config_of_home, platform_config
from hermes_core.config.platform_spec import ConnectionCheck
from hermes_core.errors import UsageError

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import AccountRequest, PlatformSpec
    from hermes_core.json_values import JsonObject

TIMEOUT_SECONDS: Final = 15.0
REJECTED: Final = "{host} rejected the credentials ({reason})."


def check_connection(entry: PlatformSpec) -> ConnectionCheck:
    """Sign in to a platform; nothing is changed there."""
    secrets = Secrets()
    missing = entry.missing(secrets)
    if missing:
        return ConnectionCheck(False, missing)
    if entry.check is None:
        raise UsageError(f"{entry.title} has no connection to test.")
    result = entry.check(platform_config(config_of_home(), entry.name).extra, secrets)
    return result if isinstance(result, ConnectionCheck) else _check_account(result)


def _check_account(request: AccountRequest) -> ConnectionCheck:
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
