"""What the set-up card shows: whether a model can answer, known keys, local servers, a test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pydantic import BaseModel

from hermes_agent.providers import catalog, selection
from hermes_agent.providers.apis import PRESETS
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_dashboard.health_checks import NO_MODEL, problem_of, usable_model
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_agent.providers.apis import ProviderPreset
    from hermes_core.config.file import Settings
    from hermes_dashboard.context import DashboardContext


class HostedProvider(BaseModel):
    """A provider, and where its API key is known from; the key itself is never sent."""

    name: str
    title: str
    model: str
    variable: str
    has_key: bool
    is_from_environment: bool


class FoundServer(BaseModel):
    """A server of models on this machine."""

    name: str
    base_url: str
    models: list[str]


class ModelSetup(BaseModel):
    """Whether a model is ready, and what can be chosen."""

    is_ready: bool
    model: str
    problem: str
    providers: list[HostedProvider]
    servers: list[FoundServer]


class ModelTest(BaseModel):
    """The result of a test; the status is ok, warning or failed."""

    status: str
    detail: str
    advice: str = ""


def router(_context: DashboardContext) -> ResourceRouter:
    """The routes of the set-up."""
    routes = ResourceRouter("/api/models", tag="chat")

    @routes.get("/setup")
    def show_setup() -> ModelSetup:
        """Whether a model is ready, the providers with their keys, and local servers."""
        settings = ConfigFile.of_home().settings()
        choice = usable_model(settings)
        problem = problem_of(choice)
        return ModelSetup(
            is_ready=not problem,
            model="" if choice is None else choice.model,
            problem=problem,
            providers=[_provider(settings, preset) for preset in PRESETS],
            servers=[] if not problem else _servers(),
        )

    @routes.post("/test")
    def test_model() -> ModelTest:
        """Ask the endpoint of the default model for its models, which costs nothing."""
        choice = usable_model(ConfigFile.of_home().settings())
        if choice is None:
            return ModelTest(status="failed", detail=NO_MODEL)
        checked = catalog.check_model(choice)
        return ModelTest(
            status=checked.status,
            detail=with_command_name(checked.detail),
            advice=with_command_name(checked.advice),
        )

    return routes


def _provider(settings: Settings, preset: ProviderPreset) -> HostedProvider:
    found = selection.known_key(settings, preset)
    return HostedProvider(
        name=preset.name,
        title=preset.title,
        model=preset.model,
        variable=preset.variable if found is None else found.variable,
        has_key=found is not None,
        is_from_environment=found is not None and os.environ.get(found.variable) == found.key,
    )


def _servers() -> list[FoundServer]:
    return [
        FoundServer(**server._asdict(), models=selection.list_served_models(server))
        for server in selection.local_servers()
    ]
