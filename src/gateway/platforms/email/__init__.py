"""E-mail as a platform: a mailbox that the agent reads by IMAP and answers by SMTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_core.config.platform_spec import ENABLED, ConnectionCheck, PlatformSpec, access, seconds
from hermes_core.config.schema import Setting
from hermes_core.errors import PlatformError
from hermes_core.package_installer import Library

if TYPE_CHECKING:
    from hermes_core.config.platform_spec import FindSecret
    from hermes_core.json_values import JsonObject


def _check(options: JsonObject, secret: FindSecret) -> ConnectionCheck:
    from gateway.config import PlatformConfig  # noqa: PLC0415 - only for a test
    from gateway.platforms.email.mailbox import Mailbox  # noqa: PLC0415 - needs its library
    from gateway.platforms.email.settings import read_settings  # noqa: PLC0415 - as above
    from gateway.platforms.email.smtp import SmtpSender  # noqa: PLC0415 - as above

    try:
        settings = read_settings(PlatformConfig(extra=options), secret)
        mailbox = Mailbox(settings)
        mailbox.open()
        mailbox.close()
        SmtpSender(settings).check()
    except PlatformError as error:
        return ConnectionCheck(False, str(error))
    return ConnectionCheck(True, f"Signed in to {settings.imap.host} and {settings.smtp.host}.")


def _server(kind: str, port: int) -> tuple[Setting, ...]:
    title = kind.upper()
    return (
        Setting(
            f"{kind}_host", "str", "", f"The {title} server, e.g. {kind}.example.org.",
            only_by_hand=True,
        ),
        Setting(
            f"{kind}_port", "int", port, f"Port of the {title} server.",
            minimum=1, maximum=65_535, only_by_hand=True,
        ),
        Setting(
            f"{kind}_security", "choice", "tls",
            f"Encryption of the {title} connection (default: tls for port {port}, otherwise "
            "starttls); none only for a server on this machine.",
            choices=("tls", "starttls", "none"), only_by_hand=True,
        ),
    )  # fmt: skip


PLATFORM: Final = PlatformSpec(
    "email",
    "E-mail",
    "gateway.platforms.email.adapter",
    help="Create a mailbox for the agent alone, and enter its password (often an app password).",
    secrets=("EMAIL_ADDRESS", "EMAIL_PASSWORD"),
    credentials=("keys.email",),
    library=Library(
        "email", "E-mail", "imapclient", Path(__file__).with_name("requirements.lock"), 1, 1
    ),
    next_steps=(
        "Create a mailbox for the agent alone, and save its password (often an app password):",
        "  hermes config set keys.email",
        "Add its address to .env:",
        "  EMAIL_ADDRESS=hermes@example.org",
        "Add its servers to config.yaml under platforms.email: imap_host, smtp_host, authserv_id,",
        "and your own address under allowed_users and allow_admin_from; see the guide",
        "docs/how-to/chat-apps.md.",
    ),
    check=_check,
    options=(
        Setting(
            "address", "str", "", "The address of the mailbox.",
            secret_variable="EMAIL_ADDRESS", only_by_hand=True,
        ),
        *_server("imap", 993),
        *_server("smtp", 465),
        Setting(
            "authserv_id", "list", (),
            "Names of the servers that confirm senders: the first word of the topmost "
            "Authentication-Results header of a received message.", only_by_hand=True,
        ),
        Setting(
            "verify_sender", "bool", True,
            "Accept only senders that the server has confirmed. Without this, anyone can write "
            "in the name of an owner.", only_by_hand=True,
        ),
        ENABLED,
        *access(pairs=False),
        Setting(
            "username", "str", "", "Name for the login, if it is not the address.",
            only_by_hand=True,
        ),
        Setting("folder", "str", "INBOX", "Folder that is read.", only_by_hand=True),
        Setting(
            "ca_file", "str", "", "A file with the certificate of your own authority.",
            only_by_hand=True,
        ),
        seconds("poll_seconds", 60, "The longest time between two searches for new messages."),
        Setting(
            "messages_per_hour", "int", 60,
            "Messages of one sender per hour; more are set aside. 0 means no limit.",
            minimum=0, maximum=1_000_000,
        ),
        Setting(
            "thread_messages", "int", 200,
            "Messages of one sender in a thread; more are set aside. 0 means no limit.",
            minimum=0, maximum=1_000_000,
        ),
    ),
)  # fmt: skip
