"""The available models, and the choice of a hosted provider as the default."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, Field, StringConstraints

from hermes_agent.local import built_in
from hermes_agent.providers import selection
from hermes_agent.providers.apis import PRESETS, PRESETS_BY_NAME, ModelChoice
from hermes_core.config.file import ConfigFile
from hermes_dashboard.caches import CachedValue
from hermes_dashboard.models.text import problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext

KEEP_SECONDS: Final = 30.0


class Model(BaseModel):
    """A model, with the name that selects it."""

    name: str
    provider: str
    is_current: bool = False
    is_here: bool = True
    detail: str = ""


class Models(BaseModel):
    """Known models and the selected one."""

    current: str | None
    items: list[Model]


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


# Their hosts are fixed, so a page may choose one.
Provider = StrEnum("Provider", {preset.name: preset.name for preset in PRESETS})  # type: ignore[misc]


class DefaultModel(BaseModel):
    """A hosted provider, one of its models, and its API key unless that is already stored."""

    provider: Provider
    model: Name
    key: str = Field("", max_length=1000)


class SavedModel(BaseModel):
    """The saved default model, with notes about what else was changed."""

    provider: str
    model: str
    notes: list[str]


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the list."""
    routes = ResourceRouter(tag="chat")
    available = CachedValue(context.models, KEEP_SECONDS)  # local servers are asked for theirs

    @routes.get("/api/models")
    def models() -> Models:
        """The selected model, the models of local servers, and the built-in model."""
        items = available.get()
        current = next((item.name for item in items if item.is_current), None)
        return Models(current=current, items=items)

    @routes.put("/api/models/default", responses=problems(400))
    def set_default(body: DefaultModel) -> SavedModel:
        """Use a model of a hosted provider by default; other endpoints need a terminal."""
        preset = PRESETS_BY_NAME[body.provider]
        choice = ModelChoice(preset.api, body.model, preset.base_url)
        notes = selection.save_choice(ConfigFile.of_home(), choice, body.key.strip())
        return SavedModel(provider=body.provider, model=body.model, notes=notes)

    return routes


def available_models() -> list[Model]:
    """The selectable models: the current one, local servers' and the built-in one."""
    choice = (
        selection.selected_model(ConfigFile.of_home().settings()) or selection.find_local_model()
    )
    found = []
    if choice is not None:
        found.append(Model(name=choice.model, provider=choice.server, is_current=True))
    for server in selection.local_servers():
        names = selection.list_served_models(server)
        found += [Model(name=f"{server.base_url}#{name}", provider=server.name) for name in names]
    if choice is None or not choice.is_built_in:
        is_here = built_in.BuiltIn.of_home().is_installed
        name = built_in.MODEL_NAME
        found.append(Model(name=name, provider="built-in", is_here=is_here, detail="demo"))
    return found
