"""Settings: list, change and reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel, Field, StringConstraints

from hermes_core.config import values
from hermes_core.config.file import ConfigFile
from hermes_core.config.settings import SETTINGS
from hermes_core.errors import ConfigError, UsageError
from hermes_dashboard.models.text import Identifier, Text, problems
from hermes_dashboard.resources.pending_changes import NEEDS_CONFIRMATION, request_change
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.config.file import SettingEntry
    from hermes_core.config.schema import Setting, Value
    from hermes_dashboard.context import DashboardContext

SettingValue = bool | int | float | str | list[str]


Origin = Literal["default", "file", "environment"]
ORIGINS: Final[dict[str, Origin]] = {
    "environment": "environment",
    "config.yaml": "file",
    ".env": "file",
    "default": "default",
}
MODE_SETTING: Final = "agent.approvals"  # its choices are ordered: each allows more than the last


class SettingItem(BaseModel):
    """A setting with its value and allowed values. Values of secrets are never included."""

    name: str
    section: str
    kind: Literal["bool", "int", "float", "str", "list", "choice"]
    value: SettingValue | None
    default: SettingValue | None
    help: str
    choices: list[str]
    minimum: float | None
    maximum: float | None
    is_secret: bool
    only_by_hand: bool = Field(
        description="A change takes effect after `hermes dashboard confirm CODE` in a terminal."
    )
    is_set: bool
    origin: Literal["default", "file", "environment"]
    variable: str
    problem: Text | None = Field(description="Why the stored value is invalid.")


class SettingList(BaseModel):
    """All settings and the path of their file."""

    path: Text
    items: list[SettingItem]


class NewValue(BaseModel):
    """The new value of a setting."""

    value: (
        bool
        | int
        | Annotated[float, Field(allow_inf_nan=False)]
        | Annotated[str, StringConstraints(max_length=20_000)]
        | Annotated[list[Annotated[str, StringConstraints(max_length=1000)]], Field(max_length=500)]
    )


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of settings."""
    routes = ResourceRouter("/api/settings", tag="settings")
    responses = NEEDS_CONFIRMATION | problems(400, 404)

    @routes.get("")
    def list_settings() -> SettingList:
        """All settings; an invalid one does not hide the others."""
        config = ConfigFile.of_home()
        items = [setting_item(config, setting) for setting in SETTINGS]
        return SettingList(path=str(config.path), items=items)

    @routes.put("/{name}", response_model=SettingItem, responses=responses)
    def put_setting(name: Identifier, body: NewValue) -> Any:
        """Change a setting; an invalid value is rejected and nothing is written.

        A change that grants something is stored until it is confirmed in a terminal.
        """
        setting = find_setting(name)
        text = text_of(setting, body.value)
        config = ConfigFile.of_home()
        if needs_confirmation(config, setting, text):
            return request_change(context.home, "setting", name, text)
        config.set(setting.name, text)
        return setting_item(ConfigFile.of_home(), setting)

    @routes.delete("/{name}", response_model=SettingItem, responses=responses)
    def unset_setting(name: Identifier) -> Any:
        """Reset a setting to its default, after a confirmation if that grants something."""
        setting = find_setting(name)
        config = ConfigFile.of_home()
        if needs_confirmation(config, setting, None):
            return request_change(context.home, "setting", name, None)
        config.unset(setting.name)
        return setting_item(ConfigFile.of_home(), setting)

    return routes


def find_setting(name: str) -> Setting:
    """A setting of the table; other keys cannot be read or written here."""
    for setting in SETTINGS:
        if setting.name == name:
            return setting
    raise HTTPException(404, f"Unknown setting: {name}")


def needs_confirmation(config: ConfigFile, setting: Setting, text: str | None) -> bool:
    """Whether a change by a page takes effect only after a confirmation in a terminal.

    An invalid value raises ConfigError. Removing a credential and a mode that allows less
    grant nothing.
    """
    new = setting.default
    if text is not None and not setting.secret:
        new = values.parse_value(setting, text)
    if not setting.only_by_hand or (setting.secret and text is None):
        return False
    if setting.name != MODE_SETTING:
        return True
    try:
        old = config.get(setting.name)
    except ConfigError:
        return True
    return setting.choices.index(str(new)) > setting.choices.index(str(old))


def text_of(setting: Setting, value: bool | float | str | list[str]) -> str:
    """The value as text of the settings file."""
    if setting.secret and not (isinstance(value, str) and value):
        raise UsageError(f"{setting.name} must not be empty.")
    if isinstance(value, list):
        if setting.kind != "list":
            raise UsageError(f"{setting.name} must be {values.describe_allowed(setting)}.")
        if any("," in item for item in value):
            raise UsageError(f"Values in {setting.name} must not contain commas.")
        return ", ".join(value)
    return values.format_value(value)


def setting_item(config: ConfigFile, setting: Setting) -> SettingItem:
    """A setting as a list item; the value of a secret is omitted."""
    return setting_fields(setting, lambda: config.entry(setting.name))


def setting_fields(setting: Setting, read: Callable[[], SettingEntry]) -> SettingItem:
    """A list item; *read* returns the value, or raises ConfigError."""
    problem = None
    value: Value = setting.default
    origin: Origin = "default"
    try:
        entry = read()
        value, origin = entry.value, ORIGINS[entry.source]
    except ConfigError as error:
        problem, origin = str(error), "file"
    return SettingItem.model_validate(
        {
            **setting._asdict(),
            "section": setting.section,
            "value": None if setting.secret else value,
            "default": None if setting.secret else setting.default,
            "is_secret": setting.secret,
            "is_set": origin != "default",
            "origin": origin,
            "variable": setting.variable,
            "problem": problem,
        }
    )
