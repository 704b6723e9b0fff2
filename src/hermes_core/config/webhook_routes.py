"""Routes of the webhook platform in config.yaml: read, validated, written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from hermes_core.config.settings import SETTINGS
from hermes_core.errors import FieldError

if TYPE_CHECKING:
    from hermes_core.config.file import ConfigFile
    from hermes_core.json_values import JsonObject

PATH: Final = ("platforms", "webhook", "routes")
DEFAULT_SECRET_VARIABLE: Final = "WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
VARIABLE_PATTERN: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}_SECRET")
CONTROL_PATTERN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
CHAT_MODES: Final = ("per-delivery", "fixed")
KEYS: Final = ("chat", "deliver", "needs_timestamp", "per_minute", "prompt", "secret_env")
DEFAULT_PER_MINUTE: Final = 30
MAX_PER_MINUTE: Final = 100_000
HIDDEN_USER: Final = "…@"  # in place of the user and password of a URL


class WebhookRouteOptions(NamedTuple):
    """The options of a route as they are in the file."""

    prompt: str
    secret_env: str = DEFAULT_SECRET_VARIABLE
    deliver_url: str = ""  # empty: answers are posted nowhere
    chat: str = CHAT_MODES[0]
    needs_timestamp: bool = False
    per_minute: int = DEFAULT_PER_MINUTE

    def fields(self) -> JsonObject:
        """The entry of config.yaml, without defaults."""
        entry: JsonObject = {"prompt": self.prompt}
        if self.secret_env != DEFAULT_SECRET_VARIABLE:
            entry["secret_env"] = self.secret_env
        if self.deliver_url:
            entry["deliver"] = {"url": self.deliver_url}
        if self.chat != CHAT_MODES[0]:
            entry["chat"] = self.chat
        if self.needs_timestamp:
            entry["needs_timestamp"] = True
        if self.per_minute != DEFAULT_PER_MINUTE:
            entry["per_minute"] = self.per_minute
        return entry

    def grants_beyond(self, old: WebhookRouteOptions) -> bool:
        """Whether a change from *old* lets anyone do or read more than before."""
        return (
            self.prompt != old.prompt
            or self.secret_env != old.secret_env
            or self.deliver_url not in {"", old.deliver_url}
            or self.chat not in {CHAT_MODES[0], old.chat}
            or (old.needs_timestamp and not self.needs_timestamp)
            or self.per_minute > old.per_minute
        )

    @property
    def summary(self) -> str:
        """One line for a person who decides about it."""
        shown_url = without_password(self.deliver_url)
        parts = [
            f"prompt {self.prompt!r}",
            f"signed with {self.secret_env}",
            f"answers to {shown_url}" if shown_url else "answers are not posted",
            "one conversation for all deliveries" if self.chat == "fixed" else "",
            "signatures need a timestamp" if self.needs_timestamp else "",
            f"at most {self.per_minute} a minute",
        ]
        return ", ".join(part for part in parts if part)


def without_password(url: str) -> str:
    """A URL without its user and password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return url if host == parts.netloc else urlunsplit(parts._replace(netloc=HIDDEN_USER + host))


def parse_options(entry: object) -> WebhookRouteOptions:
    """The options of an entry of config.yaml; FieldError if it is invalid."""
    if not isinstance(entry, dict) or not set(entry) <= set(KEYS):
        raise FieldError("", f"allowed keys are {', '.join(KEYS)}.")
    prompt, per_minute = entry.get("prompt"), entry.get("per_minute", DEFAULT_PER_MINUTE)
    if not isinstance(prompt, str) or not prompt.strip():
        raise FieldError("prompt", "`prompt` is required.")
    chat = entry.get("chat", CHAT_MODES[0])
    if chat not in CHAT_MODES:
        raise FieldError("chat", f"chat must be one of {', '.join(CHAT_MODES)}.")
    if not isinstance(per_minute, int) or isinstance(per_minute, bool) or per_minute < 1:
        raise FieldError("per_minute", "per_minute must be an integer of at least 1.")
    return WebhookRouteOptions(
        prompt,
        str(entry.get("secret_env") or DEFAULT_SECRET_VARIABLE),
        _deliver_url(entry.get("deliver")),
        str(chat),
        str(entry.get("needs_timestamp")).strip().lower() in {"true", "yes", "on", "1"},
        per_minute,
    )


def _deliver_url(deliver: object) -> str:
    if deliver is None:
        return ""
    if not isinstance(deliver, dict) or set(deliver) != {"url"}:
        raise FieldError("deliver_url", "deliver may only contain `url`.")
    text = str(deliver["url"])
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not text.isprintable() or " " in text:
        raise FieldError("deliver_url", "deliver.url must be an http(s):// URL.")
    return text


def check_name(name: str) -> None:
    """Raise FieldError for a name that cannot be part of a path."""
    if not NAME_PATTERN.fullmatch(name):
        raise FieldError("name", "the name may only contain letters, digits, - and _.")


def check_request(name: str, new: WebhookRouteOptions, old: WebhookRouteOptions | None) -> None:
    """Raise FieldError for a route that a page may not request.

    A page chooses only variables named as secrets of routes: another
    credential must not become the secret of a route.
    """
    check_name(name)
    parse_options(new.fields())
    if CONTROL_PATTERN.search(new.prompt):
        raise FieldError("prompt", "The prompt has control characters.")
    if HIDDEN_USER in new.deliver_url:
        raise FieldError("deliver_url", "Enter the user and the password of the URL again.")
    if new.per_minute > MAX_PER_MINUTE:
        raise FieldError("per_minute", f"per_minute must be at most {MAX_PER_MINUTE}.")
    if old is None or old.secret_env != new.secret_env:
        check_variable(new.secret_env)


def check_variable(name: str) -> None:
    """Raise FieldError for a variable whose name does not say that it is a route's secret."""
    taken = {setting.variable for setting in SETTINGS} - {DEFAULT_SECRET_VARIABLE}
    if not VARIABLE_PATTERN.fullmatch(name) or name in taken:
        raise FieldError(
            "secret_env",
            "The variable must have capital letters, digits and _ and end with _SECRET, as in "
            "REVIEWS_SECRET; variables of other settings are not allowed.",
        )


def route_entries(config: ConfigFile) -> dict[str, object]:
    """The entries of the file by name, valid or not."""
    section, platform, key = PATH
    options = config.block(section).get(platform)
    entries = options.get(key) if isinstance(options, dict) else None
    return (
        {str(name): entry for name, entry in entries.items()} if isinstance(entries, dict) else {}
    )


def write_route(config: ConfigFile, name: str, options: WebhookRouteOptions | None) -> None:
    """Write a route into config.yaml, or remove it if *options* is None."""
    config.set_nested((*PATH, name), None if options is None else options.fields())
