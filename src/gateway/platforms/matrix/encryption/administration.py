"""What `hermes gateway matrix` does with the keys of an account.

It opens the key store as its owner; a running gateway notices that and reads it again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import ClientError

from gateway.platforms.matrix import results
from gateway.platforms.matrix.client import MatrixClient
from gateway.platforms.matrix.encryption.key_store import KeyStore
from gateway.platforms.matrix.encryption.own_device import open_device
from gateway.platforms.matrix.encryption.record_names import SUMMARY
from hermes_core.errors import PlatformDownError, PlatformRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.platforms.base import Records
    from hermes_core.json_values import JsonData

DEVICE_NAME: Final = "Hermes"


class ResetResult(NamedTuple):
    """The new device of an account."""

    account: str
    device_id: str
    problem: str  # why it is not cross-signed, or empty


async def cross_sign(records: Records, homeserver: str, token: str, password: str) -> ResetResult:
    """Sign the device with cross-signing keys; those of another program are replaced."""
    client = MatrixClient(homeserver, token)
    try:
        return await _open(client, records, password, is_new=False)
    except (ClientError, OSError, TimeoutError) as error:
        raise _no_response(error) from error
    finally:
        await client.close()


async def reset(
    records: Records,
    homeserver: str,
    token: str,
    password: str,
    account: str,
    keep_token: Callable[[str], object],
) -> ResetResult:
    """Start with a new device: log in with the password, or use the token of a new login.

    *keep_token* stores the new token.
    """
    client = MatrixClient(homeserver, token)
    try:
        if password:
            new_token = await _log_in(client, account, password)
            keep_token(new_token)
            await _log_out(client)
            client.access_token = new_token
        return await _open(client, records, password, is_new=True)
    except (ClientError, OSError, TimeoutError) as error:
        raise _no_response(error) from error
    finally:
        await client.close()


def _no_response(error: Exception) -> PlatformDownError:
    reason = results.describe_exception(error)
    return PlatformDownError(f"No response from the homeserver: {reason}")


async def _log_in(client: MatrixClient, account: str, password: str) -> str:
    body: dict[str, JsonData] = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": account},
        "password": password,
        "initial_device_display_name": DEVICE_NAME,
    }
    answer = await client.call("POST", "login", body)
    return str(answer["access_token"])


async def _log_out(client: MatrixClient) -> None:
    """Delete the device of the old token, if that is still valid."""
    try:
        await client.call("POST", "logout", {})
    except PlatformRefusedError:
        return


async def _open(
    client: MatrixClient, records: Records, password: str, *, is_new: bool
) -> ResetResult:
    answer = await client.whoami()
    if results.is_error(answer):
        raise results.platform_error(answer)
    account = str(answer.user_id)
    store = KeyStore(records, account)
    if is_new:
        await asyncio.to_thread(store.open)
        if store.device_id != answer.device_id:
            store.forget_device()
            await store.flush()
    machine = await open_device(client, store, account, answer.device_id, password)
    problem = str(store.load_json(SUMMARY).get("problem") or "")
    return ResetResult(account, machine.store.device_id, problem)
