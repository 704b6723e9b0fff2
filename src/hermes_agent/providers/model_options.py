"""The models that a conversation can change to without further settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.local.built_in import MODEL_NAME as BUILT_IN
from hermes_agent.local.built_in import BuiltIn
from hermes_agent.providers import selection
from hermes_agent.providers.model_list import list_models

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.providers.selection import ModelChoice
    from hermes_core.config.file import Settings

MAX_OPTIONS: Final = 200
UNLISTED_APIS: Final = frozenset({"local", "script"})


class ModelOption(NamedTuple):
    """A model: the name that `/model` takes, and where it runs."""

    name: str
    provider: str


def model_options(settings: Settings) -> list[ModelOption]:
    """The configured model, its fallbacks, and what its provider and this machine offer."""
    options: dict[str, ModelOption] = {}
    for option in _all_options(settings):
        options.setdefault(option.name, option)
        if len(options) == MAX_OPTIONS:
            break
    return list(options.values())


def _all_options(settings: Settings) -> Iterator[ModelOption]:
    choice = selection.configured_model(settings)
    if choice is not None:
        yield ModelOption(choice.model, _provider(choice))
    for name in settings.get_list("llm.fallbacks"):
        yield ModelOption(name, "fallback")
    for server in selection.local_servers():
        for name in selection.list_served_models(server):
            yield ModelOption(f"{server.base_url}#{name}", server.name)
    if BuiltIn.of_home().is_installed:
        yield ModelOption(BUILT_IN, "built-in demo")
    if choice is not None and choice.api not in UNLISTED_APIS:
        for name in list_models(choice).names:
            yield ModelOption(name, _provider(choice))


def _provider(choice: ModelChoice) -> str:
    return choice.base_url or choice.api
