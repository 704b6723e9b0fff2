"""Settings: what there is to decide, what was decided, and deciding it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, HTTPException

from hermes_core.config import values
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError, UsageError
from hermes_dashboard.models.system import NewValue, SettingItem, SettingList
from hermes_dashboard.models.text import Named, problems

if TYPE_CHECKING:
    from hermes_core.config.schema import Setting
    from hermes_dashboard.context import DashboardContext

ORIGINS: Final = {
    "environment": "environment",
    "config.yaml": "file",
    ".env": "file",
    "default": "default",
}


def router(_parts: DashboardContext) -> APIRouter:
    """The addresses of settings."""
    routes = APIRouter(prefix="/api/settings", tags=["settings"])

    @routes.get("", response_model=SettingList)
    def list_settings() -> dict[str, Any]:
        """All settings; an invalid one does not hide the others."""
        config = ConfigFile.of_home()
        return {"path": str(config.path), "items": [shown(config, one) for one in SETTINGS]}

    @routes.put("/{name}", response_model=SettingItem, responses=problems(400, 403, 404))
    def put_setting(name: Named, asked: NewValue) -> dict[str, Any]:
        """Change a setting; an invalid value is rejected and nothing is written."""
        setting = changeable(name)
        config = ConfigFile.of_home()
        config.set(setting.name, text_of(setting, asked.value))
        return shown(ConfigFile.of_home(), setting)

    @routes.delete("/{name}", response_model=SettingItem, responses=problems(400, 403, 404))
    def unset_setting(name: Named) -> dict[str, Any]:
        """Reset a setting to its default."""
        setting = changeable(name)
        ConfigFile.of_home().unset(setting.name)
        return shown(ConfigFile.of_home(), setting)

    return routes


def known(name: str) -> Setting:
    """A setting of the table; nothing else can be read or written here."""
    for setting in SETTINGS:
        if setting.name == name:
            return setting
    raise HTTPException(404, f"unknown setting: {name}")


def changeable(name: str) -> Setting:
    """The same, unless it says what is run or who is let in: a page must not decide that."""
    setting = known(name)
    if setting.only_by_hand:
        raise HTTPException(403, f"{name} is set in a terminal: hermes config set {name} VALUE")
    return setting


def text_of(setting: Setting, value: bool | float | str | list[str]) -> str:
    """What was sent as a person would type it."""
    if setting.secret and not (isinstance(value, str) and value):
        raise UsageError(f"{setting.name} is a secret: a text that is not empty")
    if isinstance(value, list):
        if setting.kind != "list":
            raise UsageError(f"{setting.name} must be {values.describe_allowed(setting)}.")
        if any("," in one for one in value):
            raise UsageError(f"the names in {setting.name} cannot have commas in them")
        return ", ".join(value)
    return values.format_value(value)


def shown(config: ConfigFile, setting: Setting) -> dict[str, Any]:
    """A setting as the page shows it, without what a secret is."""
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
