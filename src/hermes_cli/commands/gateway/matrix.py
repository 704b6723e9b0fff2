"""`hermes gateway matrix`: encryption keys and verification of the Matrix account."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.platforms.matrix import PLATFORM
from gateway.platforms.matrix.encryption.administration import read_status
from gateway.platforms.matrix.encryption.record_types import (
    ACCOUNT_NAME,
    ANSWER_NAME,
    VERIFICATION_NAME,
)
from gateway.process.config_loader import Secrets
from hermes_cli import history, output_files
from hermes_cli.output import confirm
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_state.files import AdapterRecords

if TYPE_CHECKING:
    import argparse

    from gateway.platforms.matrix.encryption.administration import KeyStatus
    from gateway.platforms.matrix.encryption.record_types import VerificationRecord
    from hermes_cli.output import CommandOutput
    from hermes_state.store import SessionDB

MEMORY_PREFIX: Final = "platform:matrix:"
TOKEN_SETTING: Final = "keys.matrix"  # noqa: S105 - the name of a setting
TOKEN_VARIABLE: Final = "MATRIX_ACCESS_TOKEN"  # noqa: S105 - the name of a variable
SERVER_VARIABLE: Final = "MATRIX_HOMESERVER"
ANSWER_SECONDS: Final = 30.0
NO_ACCOUNT: Final = (
    "The gateway has not been connected to Matrix yet. Run `hermes gateway add matrix`, then "
    "`hermes gateway start`."
)
NO_VERIFICATION: Final = (
    "No verification is pending. Start one in your Matrix app: open the profile of {account}, "
    "choose Verify, and run this command when the app shows emoji. The gateway must be running."
)
RESTART_HINT: Final = "Restart a running gateway with `hermes gateway restart`."


def status(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Show the device and its keys."""
    with history.open_for_reading() as db:
        found = read_status(_records(db), _account(db))
    if arguments.json:
        out.json(found._asdict())
    else:
        _print_status(found, out)
    return 0


def _print_status(found: KeyStatus, out: CommandOutput) -> None:
    signed = "yes" if found.cross_signed else f"no: {found.problem or 'not connected yet'}"
    out.pairs(
        [
            ("Account", found.account),
            ("Device", found.device_id or "none"),
            ("Fingerprint", found.readable_fingerprint),
            ("Cross-signed", signed),
            ("Encrypted rooms", str(found.encrypted_rooms)),
            ("Room keys", str(found.room_keys)),
            ("Verified devices", ", ".join(found.verified_devices) or "none"),
            ("Messages waiting for a key", str(found.waiting)),
            ("Messages never decrypted", str(found.unreadable)),
        ]
    )


def verify(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Show the emoji of a verification and confirm them."""
    with history.open_for_writing() as db:
        account = _account(db)
        current = _verification(db, account)
        if not current.get("emoji"):
            raise UsageError(NO_VERIFICATION.format(account=account))
        out.text(f"Verification of device {current['device']} of {current['user']}:")
        out.text()
        for symbol, name in current["emoji"]:
            out.text(f"  {symbol}  {name}")
        out.text()
        out.flush()
        is_same = not arguments.no and confirm(
            "Does your app show the same emoji?", out, is_confirmed=arguments.yes
        )
        answer = {"transaction_id": current["transaction_id"], "is_same": is_same}
        db.meta.set_meta(MEMORY_PREFIX + ANSWER_NAME + account, json.dumps(answer))
        return _await_result(db, account, current, out, is_same=is_same)


def _await_result(
    db: SessionDB, account: str, current: VerificationRecord, out: CommandOutput, *, is_same: bool
) -> int:
    deadline = time.monotonic() + ANSWER_SECONDS
    while _verification(db, account).get("transaction_id") == current["transaction_id"]:
        if time.monotonic() > deadline:
            raise UsageError(
                "No answer from the gateway or the app. Check `hermes gateway status`, and "
                "confirm the emoji in the app, too."
            )
        time.sleep(0.2)
    if not is_same:
        out.text("Verification cancelled. If the emoji differ, someone may read your messages.")
        return 1
    name = f"{current['user']} {current['device']}"
    if name not in read_status(_records(db), account).verified_devices:
        raise UsageError("The verification was cancelled by the app.")
    out.text(f"Device {current['device']} of {current['user']} is verified.")
    return 0


def export_keys(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Write the room keys to an encrypted file."""
    path = Path(arguments.file)
    if path.exists() and not arguments.force:
        raise UsageError(f"{path} already exists; use --force to replace it.")
    _require_library()
    from gateway.platforms.matrix.encryption import administration  # noqa: PLC0415 - as above
    from gateway.platforms.matrix.encryption.key_store import KeyStore  # noqa: PLC0415 - as above

    with history.open_for_reading() as db:
        store = KeyStore(_records(db), _account(db))
        store.read()
        passphrase = _ask_for_passphrase(out, is_new=True)
        content, count = administration.export_keys(store, passphrase)
    output_files.write(path, [content], is_replacing=arguments.force)
    out.text(f"{count} room keys written to {path}.")
    return 0


def import_keys(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Read room keys from an encrypted file."""
    _require_library()
    from gateway.platforms.matrix.encryption import administration  # noqa: PLC0415 - as above
    from gateway.platforms.matrix.encryption.key_store import KeyStore  # noqa: PLC0415 - as above

    try:
        content = Path(arguments.file).read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read {arguments.file}: {error.strerror or error}.") from error
    passphrase = _ask_for_passphrase(out, is_new=False)
    with history.open_for_writing() as db:
        store = KeyStore(_records(db), _account(db))
        new, total = administration.import_keys(store, content, passphrase)
    known = "; the others were known" if new < total else ""
    out.text(f"{new} of {total} room keys imported{known}.")
    return 0


def cross_sign(_arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Sign the device with cross-signing keys."""
    _require_library()
    from gateway.platforms.matrix.encryption import administration  # noqa: PLC0415 - as above

    secrets = Secrets()
    with history.open_for_writing() as db:
        password = _ask(f"Password of {_account(db)} (hidden)", out)
        work = administration.cross_sign(
            _records(db), secrets(SERVER_VARIABLE), secrets(TOKEN_VARIABLE), password
        )
        result = asyncio.run(work)
    if result.problem:
        raise UsageError(f"Device {result.device_id} is not cross-signed: {result.problem}.")
    out.text(f"Device {result.device_id} is cross-signed.")
    return 0


def reset(arguments: argparse.Namespace, out: CommandOutput) -> int:
    """Start with a new device."""
    _require_library()
    from gateway.platforms.matrix.encryption import administration  # noqa: PLC0415 - as above

    secrets = Secrets()
    with history.open_for_writing() as db:
        account = _account(db)
        question = (
            f"Start with a new device of {account}? Messages to the old one that were not read "
            "yet are lost, and the new one has to be verified."
        )
        if not confirm(question, out, is_confirmed=arguments.yes):
            out.text("Nothing was changed.")
            return 1
        prompt = f"Password of {account} (hidden; Enter if the token of a new login is set)"
        work = administration.reset(
            _records(db),
            secrets(SERVER_VARIABLE),
            secrets(TOKEN_VARIABLE),
            _ask(prompt, out),
            account,
            lambda token: ConfigFile.of_home().set(TOKEN_SETTING, token),
        )
        result = asyncio.run(work)
    out.text(f"{result.account} continues as device {result.device_id}.")
    if result.problem:
        out.note(f"It is not cross-signed: {result.problem}.")
    out.hint(RESTART_HINT)
    return 0


def _records(db: SessionDB) -> AdapterRecords:
    return AdapterRecords(db.files, "matrix")


def _account(db: SessionDB) -> str:
    account = db.meta.get_meta(MEMORY_PREFIX + ACCOUNT_NAME)
    if not account:
        raise UsageError(NO_ACCOUNT)
    return str(account)


def _verification(db: SessionDB, account: str) -> VerificationRecord:
    stored = db.meta.get_meta(MEMORY_PREFIX + VERIFICATION_NAME + account)
    result: VerificationRecord = json.loads(stored or "{}")
    return result


def _require_library() -> None:
    if not PLATFORM.is_usable:
        raise UsageError("The Matrix library is not installed. Run `hermes gateway add matrix`.")


def _ask_for_passphrase(out: CommandOutput, *, is_new: bool) -> str:
    passphrase = _ask("Passphrase (hidden)", out)
    if not passphrase:
        raise UsageError("No passphrase given.")
    if is_new and sys.stdin.isatty() and _ask("Repeat the passphrase", out) != passphrase:
        raise UsageError("The passphrases differ.")
    return passphrase


def _ask(prompt: str, out: CommandOutput) -> str:
    """A secret from the terminal, hidden, or from a line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    import getpass  # noqa: PLC0415 - only at a terminal

    out.flush()
    return getpass.getpass(f"{prompt}: ")
