"""Writing down which model answers from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.providers.selection import key_name
from hermes_core.config.settings import SETTINGS
from hermes_core.config.values import find_setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.providers.selection import Choice
    from hermes_core.config.file import ConfigFile

WRITTEN: Final = ("llm.api", "llm.base_url", "llm.model")


def keep(config: ConfigFile, choice: Choice, key: str = "") -> list[str]:
    """Let *choice* answer from now on; remarks for the user.

    A key and a window that were set for the model of another address go: the key must not
    be shown there, and the window is not true there.
    """
    settings = config.settings()
    before = (settings.get_str("llm.api"), settings.get_str("llm.base_url"))
    has_moved = before != (choice.api, choice.base_url)
    is_other = has_moved or settings.get_str("llm.model") != choice.model
    remarks = []
    if has_moved and config.unset("llm.key"):
        remarks.append("The key of the former model (llm.key) was removed.")
    if is_other and config.unset("llm.window"):
        remarks.append("llm.window was set for the former model and is the default again.")
    name = key_name(choice.api, choice.base_url)
    if name and key and key != settings.get_secret(name):
        config.set(name, key)
    for setting, value in zip(WRITTEN, (choice.api, choice.base_url, choice.model), strict=True):
        if value:
            config.set(setting, value)
        else:
            config.unset(setting)
    return [*remarks, *_overruled(config)]


def _overruled(config: ConfigFile) -> Iterator[str]:
    for name in WRITTEN:
        if config.entry(name).source == "environment":
            variable = find_setting(SETTINGS, name).variable
            yield f"The environment variable {variable} overrides what was written."
