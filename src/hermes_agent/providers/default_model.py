"""Saves the default model: its API, endpoint and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_agent.providers.selection import key_name
from hermes_core.config.settings import SETTINGS
from hermes_core.config.values import find_setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.providers.selection import ModelChoice
    from hermes_core.config.file import ConfigFile

MODEL_SETTINGS: Final = ("llm.api", "llm.base_url", "llm.model")


def save_choice(config: ConfigFile, choice: ModelChoice, key: str = "") -> list[str]:
    """Save *choice* as the default model; return notes for the user.

    The API key and the context window of a previous endpoint are removed: the key must not be
    sent to another one, and the window does not apply to it.
    """
    settings = config.settings()
    before = (settings.get_str("llm.api"), settings.get_str("llm.base_url"))
    has_moved = before != (choice.api, choice.base_url)
    is_other = has_moved or settings.get_str("llm.model") != choice.model
    notes = []
    if has_moved and config.unset("llm.key"):
        notes.append("Removed the API key of the previous model (llm.key).")
    if is_other and config.unset("llm.window"):
        notes.append("Reset llm.window, which was set for the previous model.")
    name = key_name(choice.api, choice.base_url)
    if name and key and key != settings.get_secret(name):
        config.set(name, key)
    for setting, value in zip(
        MODEL_SETTINGS, (choice.api, choice.base_url, choice.model), strict=True
    ):
        if value:
            config.set(setting, value)
        else:
            config.unset(setting)
    return [*notes, *_overridden_settings(config)]


def _overridden_settings(config: ConfigFile) -> Iterator[str]:
    for name in MODEL_SETTINGS:
        if config.entry(name).source == "environment":
            variable = find_setting(SETTINGS, name).variable
            yield f"The environment variable {variable} overrides the saved setting."
