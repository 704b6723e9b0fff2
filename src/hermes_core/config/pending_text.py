"""A pending change in words: the value now, and the value after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from hermes_core.config import values
from hermes_core.config.definitions.platforms import OPTIONS, RESTRICTIVE_VALUES
from hermes_core.config.file import ConfigFile, SettingEntry
from hermes_core.config.webhook_routes import parse_options, route_entries
from hermes_core.errors import ConfigError, FieldError
from hermes_core.requested_changes import (
    RequestedJob,
    RequestedRole,
    RequestedRoute,
    RequestedServer,
)

if TYPE_CHECKING:
    from hermes_core.config.schema import Setting, Value
    from hermes_core.pending_changes import ChangeKind, PendingChange

SECTION: Final = "platforms"
CHAT_ID: Final = "chat_id"  # a home channel may be written as a mapping


class PlatformOptions:
    """The options of platforms; each is named `platforms.PLATFORM.KEY`."""

    def __init__(self, config: ConfigFile | None = None) -> None:
        self.config = config or ConfigFile.of_home()

    @staticmethod
    def find(name: str) -> Setting:
        """The option with a name; ConfigError if there is none."""
        return values.find_setting(OPTIONS, name)

    def entry(self, option: Setting) -> SettingEntry:
        """The value of an option and its source; ConfigError if it is invalid."""
        if option.secret_variable:
            return self.config.variable_entry(option)
        block = self.config.block(SECTION).get(platform_of(option))
        raw = block.get(key_of(option)) if isinstance(block, dict) else None
        if isinstance(raw, dict):
            raw = raw.get(CHAT_ID)
        if raw is None:
            return SettingEntry(option.name, option.default, "default")
        value = values.parse_value(option, raw, str(self.config.path))
        return SettingEntry(option.name, value, "config.yaml")

    def set(self, option: Setting, text: str) -> None:
        """Write a value given as text; ConfigError if it is invalid."""
        value = self.parse(option, text)
        if option.secret_variable:
            self.config.set_variable(option.secret_variable, str(value))
        else:
            self.config.set_option(SECTION, platform_of(option), key_of(option), value)

    def unset(self, option: Setting) -> None:
        """Remove a value, so that the default applies."""
        if option.secret_variable:
            self.config.set_variable(option.secret_variable, None)
        else:
            self.config.set_option(SECTION, platform_of(option), key_of(option), None)

    def parse(self, option: Setting, text: str) -> Value:
        """The value of a text; ConfigError if it is invalid."""
        text = text.strip()
        if not text.isprintable():
            raise ConfigError(f"{option.name} must be one line of text.")
        value = values.parse_value(option, text)
        if option.secret_variable and not value:
            raise ConfigError(f"{option.name} must not be empty. Reset it instead.")
        return value

    def grants(self, option: Setting, text: str | None) -> bool:
        """Whether a change (None: to the default) may give someone more than before."""
        new = option.default if text is None else self.parse(option, text)
        if not option.only_by_hand:
            return False
        key = key_of(option)
        if key in RESTRICTIVE_VALUES and new == RESTRICTIVE_VALUES[key]:
            return False
        if isinstance(new, tuple):
            try:
                old = self.entry(option).value
            except ConfigError:
                return True
            return not (isinstance(old, tuple) and set(new) <= set(old))
        return text is not None or not option.secret_variable


def platform_of(option: Setting) -> str:
    """The platform of an option."""
    return option.key.partition(".")[0]


def key_of(option: Setting) -> str:
    """The key of an option under its platform."""
    return option.key.partition(".")[2]


EMPTY = "(empty)"


class ChangeTexts(NamedTuple):
    """The old and the new value; of a secret only whether it is set."""

    old: str
    new: str


def texts_of(change: PendingChange, config: ConfigFile) -> ChangeTexts:
    """The texts of *change*, with the current value of its setting."""
    if change.kind == "plugin":
        is_enabled = change.name in config.settings().get_list("plugins.enabled")
        return ChangeTexts("enabled" if is_enabled else "not enabled", "enabled")
    if change.kind == "job":
        new = "scheduled" if change.value is None else RequestedJob.of_text(change.value).summary
        return ChangeTexts("not scheduled", new)
    if change.kind == "mcp_server":
        new = (
            "configured" if change.value is None else RequestedServer.of_text(change.value).summary
        )
        return ChangeTexts("not configured", new)
    if change.kind == "webhook_route":
        return _route_texts(change, config)
    if change.kind in ("pairing", "role"):
        grant = RequestedRole.of_text(change.value or "")
        return ChangeTexts(grant.old or "no access", grant.new or "changed")
    return _value_texts(change, config)


def _route_texts(change: PendingChange, config: ConfigFile) -> ChangeTexts:
    entry = route_entries(config).get(change.name)
    try:
        old = "not configured" if entry is None else parse_options(entry).summary
    except FieldError:
        old = "(invalid)"
    new = old if change.value is None else RequestedRoute.of_text(change.value).summary
    return ChangeTexts(old, new)


def _value_texts(change: PendingChange, config: ConfigFile) -> ChangeTexts:
    """The texts of a setting, or of an option of a platform."""
    is_option = change.kind == "platform"
    setting = values.find_setting(OPTIONS if is_option else config.table, change.name)
    try:
        entry = PlatformOptions(config).entry(setting) if is_option else config.entry(change.name)
        old = entry.text or EMPTY
    except ConfigError:
        old = "(invalid)"
    if change.applied_at is not None:
        return ChangeTexts(old, old)
    if setting.secret:
        return ChangeTexts(old, "not set" if change.value is None else "a new value (hidden)")
    new = values.format_value(setting.default) if change.value is None else change.value
    return ChangeTexts(old, new or EMPTY)


class ChangeFacts(TypedDict):
    """The JSON form of a change."""

    code: str
    kind: ChangeKind
    name: str
    old: str
    new: str
    expires_at: float


def facts_of(change: PendingChange, config: ConfigFile) -> ChangeFacts:
    """The JSON form of *change*; the value of a secret is omitted."""
    texts = texts_of(change, config)
    return {
        "code": change.code,
        "kind": change.kind,
        "name": change.name,
        "old": texts.old,
        "new": texts.new,
        "expires_at": change.expires_at,
    }
