"""`hermes gateway matrix`: the keys of an account, on a real store and a real Synapse."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import stat
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gateway.platforms.matrix.adapter import make
from gateway.platforms.matrix.encryption.record_types import OWNER
from gateway.process.config_loader import Secrets
from gateway.process.runner import AdapterMemory
from hermes_core.errors import PlatformRefusedError
from hermes_state.files import RECORD_PREFIX, AdapterRecords
from support.adapters import AdapterSetup, RecordingInbox
from support.command_line import command, run_hermes
from support.matrix_client import ENCRYPTION, EncryptedUser, encrypted_user, position_stored
from support.matrix_verification import AppVerification
from support.waiting import PATIENCE_SECONDS, async_wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from gateway.platforms.matrix.adapter import MatrixAdapter
    from hermes_state import SessionDB
    from support.synapse import MatrixUser, Synapse

NUMBERS = itertools.count()
PASSPHRASE = "correct horse"


class Account(NamedTuple):
    """A bot whose keys are in the history of this home, and a user in an encrypted room."""

    db: SessionDB
    setup: AdapterSetup
    bot: MatrixUser
    app: EncryptedUser
    room: str

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[MatrixAdapter, RecordingInbox]]:
        adapter, inbox = make(self.setup.context()), RecordingInbox()
        try:
            await adapter.connect(inbox)
            yield adapter, inbox
            await position_stored(adapter)
        finally:
            await adapter.disconnect()


@pytest.fixture
async def account(
    db: SessionDB, synapse: Synapse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Account]:
    number = next(NUMBERS)
    bot, ann = (synapse.register_user(f"keys-{name}{number}") for name in ("bot", "ann"))
    monkeypatch.setenv("MATRIX_HOMESERVER", synapse.url)
    secrets = {"MATRIX_HOMESERVER": synapse.url, "MATRIX_ACCESS_TOKEN": bot.token}
    setup = AdapterSetup(
        AdapterMemory(db, "matrix"), tmp_path, secrets, {"sync_seconds": 1}, max_bytes=1000
    )
    setup.records = AdapterRecords(db.files, "matrix")
    setup.owners.add(ann.user_id)
    await asyncio.to_thread(run_hermes, "config", "set", "keys.matrix", bot.token)
    async with encrypted_user(ann, tmp_path / "ann") as app:
        room = ann.create_room(bot.user_id, initial_state=[ENCRYPTION])
        bot.join(room)
        yield Account(db, setup, bot, app, room)


async def hermes(*arguments: str) -> Any:
    return await asyncio.to_thread(run_hermes, "gateway", "matrix", *arguments)


async def hermes_with_input(text: str, *arguments: str) -> str:
    """Run a command that asks for a secret; its output."""
    result = await asyncio.to_thread(
        subprocess.run, command("gateway", "matrix", *arguments), input=text, text=True,
        capture_output=True, check=False, timeout=PATIENCE_SECONDS, env=dict(os.environ),
    )  # fmt: skip
    return result.stdout + result.stderr


async def test_keys_survive_an_export_and_an_import(account: Account, tmp_path: Path) -> None:
    path, other_path = tmp_path / "keys.txt", tmp_path / "other.txt"
    async with account.connected() as (_adapter, received):
        await account.app.send_text(account.room, "one")
        await received.wait_for(1)
    assert "1 room keys written" in await hermes_with_input(
        f"{PASSPHRASE}\n", "keys", "export", str(path)
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    prefix = f"{RECORD_PREFIX}matrix/keys/{account.bot.user_id}/room_key/"
    for name in account.db.files.with_prefix(prefix):
        account.db.files.remove(prefix + name)
    await account.app.send_text(account.room, "two")
    async with account.connected() as (_adapter, received):
        await async_wait_until(lambda: status(account)["waiting"])
        owner = f"{RECORD_PREFIX}matrix/keys/{account.bot.user_id}/{OWNER}"
        adapters_mark = account.db.files.get(owner)
        wrong = await hermes_with_input("wrong\n", "keys", "import", str(path))
        assert "passphrase is wrong" in wrong
        assert adapters_mark is not None
        assert account.db.files.get(owner) == adapters_mark  # it was not disturbed
        imported = await hermes_with_input(f"{PASSPHRASE}\n", "keys", "import", str(path))
        assert "1 of 1 room keys imported" in imported
        await async_wait_until(lambda: "two" in received.texts)
    # The file of another program has the same keys.
    await account.app.client.export_keys(str(other_path), PASSPHRASE, 1000)
    known = await hermes_with_input(f"{PASSPHRASE}\n", "keys", "import", str(other_path))
    assert "0 of 1 room keys imported" in known


def status(account: Account) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run_hermes("gateway", "matrix", "status", "--json").out)
    return result


async def test_the_status_shows_the_device_and_its_keys(account: Account) -> None:
    before = await hermes("status")
    assert (before.code, "has not been connected" in before.err) == (2, True)
    async with account.connected() as (_adapter, received):
        await account.app.send_text(account.room, "one")
        await received.wait_for(1)
    facts = await asyncio.to_thread(status, account)
    device = account.bot.call("GET", "/_matrix/client/v3/account/whoami")["device_id"]
    assert (facts["device_id"], facts["cross_signed"], facts["problem"]) == (device, True, "")
    assert (facts["encrypted_rooms"], facts["room_keys"], facts["waiting"]) == (1, 1, 0)
    text = (await hermes("status")).out
    assert device in text
    assert facts["fingerprint"][:4] in text


async def test_a_device_is_verified_on_the_command_line(account: Account) -> None:
    async with account.connected():
        nothing = await hermes("verify", "--yes")
        assert "No verification is pending" in nothing.err
        device = (await asyncio.to_thread(status, account))["device_id"]
        app = AppVerification(account.app, account.bot.user_id, device)
        await app.request()
        await app.wait_for("ready")
        await app.exchange_keys()
        key = account.app.client.olm.account.identity_keys["ed25519"]
        name = f"ed25519:{account.app.device_id}"
        confirmed, _macs = await asyncio.gather(hermes("verify", "--yes"), app.confirm({name: key}))
    assert confirmed.code == 0, confirmed.err
    assert f"Device {account.app.device_id} of {account.app.user.user_id} is verified" in (
        confirmed.out
    )
    found = (await asyncio.to_thread(status, account))["verified_devices"]
    assert found == [f"{account.app.user.user_id} {account.app.device_id}"]


async def test_a_new_device_replaces_one_whose_keys_were_lost(account: Account) -> None:
    async with account.connected() as (_adapter, received):
        await account.app.send_text(account.room, "one")
        await received.wait_for(1)
    old = await asyncio.to_thread(status, account)
    prefix = f"{RECORD_PREFIX}matrix/"
    for name in account.db.files.with_prefix(prefix):
        account.db.files.remove(prefix + name)
    with pytest.raises(PlatformRefusedError, match="is lost"):
        async with account.connected():
            pass
    output = await hermes_with_input("password\n", "reset", "--yes")
    assert "continues as device" in output
    new = await asyncio.to_thread(status, account)
    assert new["device_id"] not in {"", old["device_id"]}
    assert new["cross_signed"]
    account.setup.secrets["MATRIX_ACCESS_TOKEN"] = Secrets()("MATRIX_ACCESS_TOKEN")
    async with account.connected() as (_adapter, received):
        await account.app.send_text(account.room, "two")
        await received.wait_for(1)
    assert received.texts == ["two"]
