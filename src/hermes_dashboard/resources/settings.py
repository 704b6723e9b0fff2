"""Settings: list, change and reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, HTTPException

from hermes_core.command_name import with_command_name
from hermes_core.config import values
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError, UsageError
from hermes_dashboard.models.system import NewValue, SettingItem, SettingList
from hermes_dashboard.models.text import Identifier, problems

if TYPE_CHECKING:
    from hermes_core.config.schema import Setting
    from hermes_dashboard.context import DashboardContext

ORIGINS: Final = {
    "environment": "environment",
    "config.yaml": "file",
    ".env": "file",
    "default": "default",
}


def router(_context: DashboardContext) -> APIRouter:
    """The routes of settings."""
    routes = APIRouter(prefix="/api/settings", tags=["settings"])

    @routes.get("", response_model=SettingList)
    def list_settings() -> dict[str, Any]:
        """All settings; an invalid one does not hide the others."""
        config = ConfigFile.of_home()
        return {
            "path": str(config.path),
            "items": [setting_item(config, setting) for setting in SETTINGS],
        }

    @routes.put("/{name}", response_model=SettingItem, responses=problems(400, 403, 404))
    def put_setting(name: Identifier, body: NewValue) -> dict[str, Any]:
        """Change a setting; an invalid value is rejected and nothing is written."""
        setting = find_writable_setting(name)
        config = ConfigFile.of_home()
        config.set(setting.name, text_of(setting, body.value))
        return setting_item(ConfigFile.of_home(), setting)

    @routes.delete("/{name}", response_model=SettingItem, responses=problems(400, 403, 404))
    def unset_setting(name: Identifier) -> dict[str, Any]:
        """Reset a setting to its default."""
        setting = find_writable_setting(name)
        ConfigFile.of_home().unset(setting.name)
        return setting_item(ConfigFile.of_home(), setting)

    return routes


def find_setting(name: str) -> Setting:
    """A setting of the table; other keys cannot be read or written here."""
    for setting in SETTINGS:
        if setting.name == name:
            return setting
    raise HTTPException(404, f"Unknown setting: {name}")


def find_writable_setting(name: str) -> Setting:
    """A setting that a page may change; not those that select commands or grant access."""
    setting = find_setting(name)
    if setting.only_by_hand:
        hint = f"{name} can only be changed in a terminal: `hermes config set {name} VALUE`"
        raise HTTPException(403, with_command_name(hint))
    return setting


def text_of(setting: Setting, value: bool | float | str | list[str]) -> str:
    """The value as text of the settings file."""
    if setting.secret and not (isinstance(value, str) and value):
        raise UsageError(f"{setting.name} must be a non-empty text.")
    if isinstance(value, list):
        if setting.kind != "list":
            raise UsageError(f"{setting.name} must be {values.describe_allowed(setting)}.")
        if any("," in item for item in value):
            raise UsageError(f"Values in {setting.name} must not contain commas.")
        return ", ".join(value)
    return values.format_value(value)


def setting_item(config: ConfigFile, setting: Setting) -> dict[str, Any]:
    """A setting as a list item; the value of a secret is omitted."""
    problem = None
    value, origin = setting.default, "default"
    try:
        entry = config.entry(setting.name)
        value, origin = entry.value, ORIGINS[entry.source]
    except ConfigError as error:
        problem, origin = str(error), "file"
    return {
        "name": setting.name,
        "section": setting.section,
        "kind": setting.kind,
        "value": None if setting.secret else _plain(value),
        "default": None if setting.secret else _plain(setting.default),
        "help": setting.help,
        "choices": setting.choices,
        "minimum": setting.minimum,
        "maximum": setting.maximum,
        "is_secret": setting.secret,
        "only_by_hand": setting.only_by_hand,
        "is_set": origin != "default",
        "origin": origin,
        "variable": setting.variable,
        "problem": problem,
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
