"""Reads and writes the options of platforms, also those of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.platforms.registry import PlatformRegistry
from hermes_core.config import values
from hermes_core.config.file import ConfigFile, SettingEntry
from hermes_core.config.platform_spec import RESTRICTIVE_VALUES
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from hermes_core.config.schema import Setting, Value

SECTION: Final = "platforms"
CHAT_ID: Final = "chat_id"  # a home channel may be written as a mapping


class PlatformOptions:
    """The options of platforms; each is named `platforms.PLATFORM.KEY`."""

    def __init__(self, config: ConfigFile | None = None) -> None:
        self.config = config or ConfigFile.of_home()

    @staticmethod
    def find(name: str) -> Setting:
        """The option with a name; ConfigError if there is none."""
        platforms = PlatformRegistry.of_home()
        return values.find_setting([item for each in platforms for item in each.settings], name)

    def entry(self, option: Setting) -> SettingEntry:
        """The value of an option and its source; ConfigError if it is invalid."""
        if option.secret:
            return self.config.secret_entry(option)
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
