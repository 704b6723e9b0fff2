"""Options of the chat platforms, as the dashboard's forms offer them.

They are keys under `platforms.NAME` in config.yaml. An option with a variable is in `.env`
instead. Credentials are settings of their own (`keys.…`), which a form names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_core.config.schema import Setting

if TYPE_CHECKING:
    from hermes_core.config.schema import Kind, TextFormat, Value

MAX_SECONDS: Final = 86_400


class PlatformForm(NamedTuple):
    """The form of a platform: its credentials and options."""

    name: str
    title: str
    help: str  # where its credentials come from
    credentials: tuple[str, ...]  # names of settings
    options: tuple[Setting, ...]


def _option(
    platform: str,
    key: str,
    kind: Kind,
    default: Value,
    text: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    variable: str = "",
    grants: bool = False,
    text_format: TextFormat = "",
) -> Setting:
    return Setting(
        f"platforms.{platform}.{key}",
        kind,
        default,
        text,
        choices=choices,
        minimum=minimum,
        maximum=maximum,
        secret_variable=variable,
        only_by_hand=grants,
        format=text_format,
    )


def _enabled(name: str) -> Setting:
    text = "Connect this platform. Without a value it is connected if its credentials are set."
    return _option(name, "enabled", "bool", True, text, grants=True)


def _access(name: str, *, pairs: bool = True) -> tuple[Setting, ...]:
    """Who may write; the options of every platform for people."""
    return (
        _option(
            name, "allowed_users", "list", (),
            "User IDs with access as members, one per line. If there are any, unknown users get no "
            "pairing code.", grants=True,
        ),
        _option(
            name, "allow_admin_from", "list", (),
            "User IDs with the role owner: they have your rights.", grants=True,
        ),
        _option(
            name, "unauthorized_dm_behavior", "choice", "pair" if pairs else "ignore",
            "Reply to direct messages from unknown users: a pairing code, or nothing.",
            choices=("pair", "ignore"), grants=True,
        ),
    )  # fmt: skip


def _groups(name: str) -> tuple[Setting, ...]:
    return (
        _option(
            name, "allowed_chats", "list", (),
            "IDs of groups whose members may all write, as guests, one per line.", grants=True,
        ),
        _option(
            name, "require_mention", "bool", True,
            "Answer in groups only if the agent is addressed: a mention, a reply, a command.",
            grants=True,
        ),
        _option(
            name, "home_channel", "str", "",
            "ID of the chat for messages that are not replies, such as reports of jobs.",
            grants=True,
        ),
    )  # fmt: skip


def _seconds(name: str, key: str, default: int, text: str) -> Setting:
    return _option(name, key, "int", default, text, minimum=1, maximum=MAX_SECONDS)


def _telegram() -> PlatformForm:
    name = "telegram"
    return PlatformForm(
        name,
        "Telegram",
        "Create a bot with @BotFather on Telegram (/newbot) and enter its token.",
        ("keys.telegram", "keys.telegram_webhook"),
        (
            _enabled(name),
            *_access(name),
            *_groups(name),
            _seconds(name, "poll_seconds", 30, "Long-polling timeout in seconds."),
            _option(
                name, "webhook_url", "str", "",
                "Receive updates by webhook: an https URL that reaches the gateway's HTTP server. "
                "Needs the webhook secret.", grants=True, text_format="url",
            ),
            _option(
                name, "base_url", "str", "", "URL of your own Bot API server.", grants=True,
                text_format="url",
            ),
        ),
    )  # fmt: skip


def _matrix() -> PlatformForm:
    name = "matrix"
    return PlatformForm(
        name,
        "Matrix",
        "Create an account for the agent, log in as it once, for Hermes only, and enter the access "
        "token of that login.",
        ("keys.matrix",),
        (
            _option(
                name, "homeserver", "str", "",
                "The homeserver of the account, e.g. https://matrix.example.org.",
                variable="MATRIX_HOMESERVER", grants=True, text_format="url",
            ),
            _enabled(name),
            *_access(name),
            *_groups(name),
            _option(name, "auto_join", "bool", True, "Accept invitations to rooms.", grants=True),
            _option(
                name, "only_verified", "bool", False,
                "Send messages in encrypted rooms to verified devices only.", grants=True,
            ),
            _seconds(
                name, "key_wait_seconds", 600,
                "Seconds that a message waits for its key before the chat is notified.",
            ),
            _option(
                name, "timeline_limit", "int", 50, "Messages per room in one sync.",
                minimum=1, maximum=1000,
            ),
            _seconds(name, "sync_seconds", 30, "Long-polling timeout in seconds."),
        ),
    )  # fmt: skip


def _discord() -> PlatformForm:
    name = "discord"
    return PlatformForm(
        name,
        "Discord",
        "Create an application with a bot in the Discord developer portal, enable its message "
        "content intent, invite the bot, and enter its token.",
        ("keys.discord",),
        (
            _enabled(name),
            *_access(name),
            *_groups(name),
            _option(
                name, "base_url", "str", "", "Another URL of Discord's API, for tests.",
                grants=True, text_format="url",
            ),
        ),
    )  # fmt: skip


def _slack() -> PlatformForm:
    name = "slack"
    return PlatformForm(
        name,
        "Slack",
        "Create a Slack app with socket mode and the events message.* and app_mention, and enter "
        "its two tokens.",
        ("keys.slack_bot", "keys.slack_app"),
        (
            _enabled(name),
            *_access(name),
            *_groups(name),
            _option(
                name, "reply_in_thread", "bool", False,
                "Start a thread with each reply in a channel.",
            ),
            _option(
                name, "base_url", "str", "", "Another URL of Slack's API, for tests.", grants=True,
                text_format="url",
            ),
        ),
    )  # fmt: skip


def _email() -> PlatformForm:
    name = "email"

    def server(kind: str, port: int) -> tuple[Setting, ...]:
        title = kind.upper()
        return (
            _option(
                name, f"{kind}_host", "str", "", f"The {title} server, e.g. {kind}.example.org.",
                grants=True,
            ),
            _option(
                name, f"{kind}_port", "int", port, f"Port of the {title} server.",
                minimum=1, maximum=65_535, grants=True,
            ),
            _option(
                name, f"{kind}_security", "choice", "tls",
                f"Encryption of the {title} connection (default: tls for port {port}, otherwise "
                "starttls); none only for a server on this machine.",
                choices=("tls", "starttls", "none"), grants=True,
            ),
        )  # fmt: skip

    return PlatformForm(
        name,
        "E-mail",
        "Create a mailbox for the agent alone, and enter its password (often an app password).",
        ("keys.email",),
        (
            _option(
                name, "address", "str", "", "The address of the mailbox.",
                variable="EMAIL_ADDRESS", grants=True,
            ),
            *server("imap", 993),
            *server("smtp", 465),
            _option(
                name, "authserv_id", "list", (),
                "Names of the servers that confirm senders: the first word of the topmost "
                "Authentication-Results header of a received message.", grants=True,
            ),
            _option(
                name, "verify_sender", "bool", True,
                "Accept only senders that the server has confirmed. Without this, anyone can write "
                "in the name of an owner.", grants=True,
            ),
            _enabled(name),
            *_access(name, pairs=False),
            _option(
                name, "username", "str", "", "Name for the login, if it is not the address.",
                grants=True,
            ),
            _option(name, "folder", "str", "INBOX", "Folder that is read.", grants=True),
            _option(
                name, "ca_file", "str", "", "A file with the certificate of your own authority.",
                grants=True,
            ),
            _seconds(
                name, "poll_seconds", 60, "The longest time between two searches for new messages."
            ),
            _option(
                name, "messages_per_hour", "int", 60,
                "Messages of one sender per hour; more are set aside. 0 means no limit.",
                minimum=0, maximum=1_000_000,
            ),
            _option(
                name, "thread_messages", "int", 200,
                "Messages of one sender in a thread; more are set aside. 0 means no limit.",
                minimum=0, maximum=1_000_000,
            ),
        ),
    )  # fmt: skip


def _webhook() -> PlatformForm:
    return PlatformForm(
        "webhook",
        "Webhooks",
        "Choose a secret that signs requests, and add routes under Webhook routes.",
        ("keys.webhook",),
        (_enabled("webhook"),),
    )


def _api_server() -> PlatformForm:
    name = "api_server"
    return PlatformForm(
        name,
        "OpenAI-compatible API",
        "Choose an access token of at least 16 characters; clients send it as a bearer token.",
        ("keys.api_server",),
        (
            _enabled(name),
            _option(
                name, "largest_body", "int", 1_048_576,
                "Maximum size of a request in bytes, without its files.",
                minimum=1024, maximum=1_000_000_000,
            ),
            _option(
                name, "answer_seconds", "float", 1800.0,
                "Seconds that a request waits for its answer.", minimum=1, maximum=MAX_SECONDS,
            ),
        ),
    )  # fmt: skip


PLATFORM_FORMS: Final = (
    _telegram(),
    _matrix(),
    _discord(),
    _slack(),
    _email(),
    _webhook(),
    _api_server(),
)
OPTIONS: Final = tuple(option for form in PLATFORM_FORMS for option in form.options)

# Values that grant nothing, whatever the value before was.
RESTRICTIVE_VALUES: Final[dict[str, Value]] = {
    "enabled": False,
    "require_mention": True,
    "auto_join": False,
    "only_verified": True,
    "verify_sender": True,
    "unauthorized_dm_behavior": "ignore",
}
