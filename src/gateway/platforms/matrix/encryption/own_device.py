"""The bot's own device: its keys are compared with the homeserver's, and cross-signed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gateway import config_values
from gateway.platforms.matrix.client import MatrixRequestError
from gateway.platforms.matrix.encryption import cross_signing
from gateway.platforms.matrix.encryption.cross_signing import CrossSigningKeys, KeyQuery
from gateway.platforms.matrix.encryption.machine import EncryptionMachine
from gateway.platforms.matrix.encryption.record_types import CROSS_SIGNING, SUMMARY
from hermes_core.errors import PlatformRefusedError

if TYPE_CHECKING:
    from gateway.platforms.matrix.client import MatrixClient
    from gateway.platforms.matrix.encryption.key_store import KeyStore
    from hermes_core.json_values import JsonObject

log = logging.getLogger(__name__)

NO_DEVICE: Final = (
    "MATRIX_ACCESS_TOKEN belongs to no device, so encryption is impossible. Log the bot in with "
    "its password and set the access token of that login."
)
LOST_KEYS: Final = (
    "The key store of {account} is lost: the homeserver has encryption keys of device {device}, "
    "this installation has none. Restore a backup that was made with `--with-secrets`, or run "
    "`hermes gateway matrix reset` to start with a new device, which cannot read older messages."
)
OTHER_KEYS: Final = (
    "The encryption keys of device {device} at the homeserver are not those in the key store of "
    "{account}. Another program uses this access token, or an old history was restored. Run "
    "`hermes gateway matrix reset` to start with a new device."
)
OTHER_DEVICE: Final = (
    "MATRIX_ACCESS_TOKEN belongs to device {device}, the key store of {account} to device "
    "{stored}. Set the access token of {stored} again, or run `hermes gateway matrix reset` to "
    "continue with {device}; messages that were sent to {stored} meanwhile cannot be read."
)
FOREIGN_KEYS: Final = (
    "the account has cross-signing keys of another program; `hermes gateway matrix cross-sign` "
    "replaces them"
)
UPLOAD_REFUSED: Final = (
    "the homeserver requires the password; run `hermes gateway matrix cross-sign`"
)


async def open_device(
    client: MatrixClient,
    store: KeyStore,
    account: str,
    device_id: str | None,
    password: str = "",
) -> EncryptionMachine:
    """The encryption of the device of the access token.

    PlatformRefusedError if its keys are lost: a new device is never created silently.
    """
    if not device_id:
        raise PlatformRefusedError(NO_DEVICE)
    await asyncio.to_thread(store.open)
    client.before_request = store.flush
    query = KeyQuery(await client.call("POST", "keys/query", {"device_keys": {account: []}}))
    published = _published_keys(query, account, device_id)
    try:
        _check(store, account, device_id, published)
    except PlatformRefusedError:
        await asyncio.to_thread(store.abandon)
        raise
    if not store.has_account:
        store.use_device(device_id)
        store.create_account()
    machine = EncryptionMachine(client, store, account)
    if not published:
        machine.olm.account.shared = False
    await machine.upload_keys()
    await cross_sign(client, machine, account, password)
    await store.flush()
    return machine


def _published_keys(query: KeyQuery, account: str, device_id: str) -> set[str]:
    keys = config_values.mapping(query.device(account, device_id).get("keys"))
    return {str(key) for key in keys.values()}


def _check(store: KeyStore, account: str, device_id: str, published: set[str]) -> None:
    """Raise PlatformRefusedError unless the stored keys are those of the device."""
    names = {"account": account, "device": device_id, "stored": store.device_id}
    if store.has_account and store.device_id != device_id:
        raise PlatformRefusedError(OTHER_DEVICE.format(**names))
    if published and not store.has_account:
        raise PlatformRefusedError(LOST_KEYS.format(**names))
    if published and published != _identity_keys(store):
        raise PlatformRefusedError(OTHER_KEYS.format(**names))


def _identity_keys(store: KeyStore) -> set[str]:
    return {str(key) for key in store.load_account().identity_keys.values()}


async def cross_sign(
    client: MatrixClient, machine: EncryptionMachine, account: str, password: str = ""
) -> str:
    """Sign the device with the cross-signing keys of the account; why not, or empty.

    The keys are created if the account has none. With a password, those of another program are
    replaced.
    """
    store = machine.store
    stored = store.load_json(CROSS_SIGNING)
    keys = CrossSigningKeys.load(stored) if stored else None
    query = await machine.query([account])
    published = query.master_key(account)
    problem = ""
    if keys is None or published != keys.master.public:
        if published and not password:
            problem = FOREIGN_KEYS
        else:
            keys = keys or CrossSigningKeys.create()
            store.keep_json(CROSS_SIGNING, keys.record())
            problem = await _publish(client, keys, account, password)
            query = await machine.query([account])
    if keys is not None and not problem:
        await _sign_device(client, keys, query, account, store.device_id)
        store.trust_master_key(account, keys.master.public)
    if problem:
        log.warning("Matrix device is not cross-signed: %s", problem)
    _summarize(machine, problem)
    return problem


async def _publish(
    client: MatrixClient, keys: CrossSigningKeys, account: str, password: str
) -> str:
    """Upload the public keys; why not, or empty."""
    body = keys.upload_body(account)
    try:
        await client.call("POST", "keys/device_signing/upload", body)
    except MatrixRequestError as error:
        if error.status != 401:
            raise
        if not password:
            return UPLOAD_REFUSED
        body["auth"] = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": account},
            "password": password,
            "session": config_values.text(error.body.get("session")),
        }
        await client.call("POST", "keys/device_signing/upload", body)
    return ""


async def _sign_device(
    client: MatrixClient, keys: CrossSigningKeys, query: KeyQuery, account: str, device_id: str
) -> None:
    device: JsonObject = query.device(account, device_id)
    if cross_signing.is_signed_by(device, account, keys.self_signing.public):
        return
    facts = {name: value for name, value in device.items() if name != "unsigned"}
    signed = cross_signing.signed(facts, account, keys.self_signing)
    await client.call("POST", "keys/signatures/upload", {account: {device_id: signed}})


def _summarize(machine: EncryptionMachine, problem: str) -> None:
    """Store what `hermes gateway matrix status` shows."""
    machine.store.keep_json(
        SUMMARY,
        {
            "device_id": machine.store.device_id,
            "fingerprint": machine.fingerprint,
            "cross_signed": not problem,
            "problem": problem,
        },
    )
