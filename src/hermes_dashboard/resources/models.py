"""Models: the choice of one, its set-up and test, the catalog with prices of the user's own."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException, Query
from pydantic import BaseModel, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from hermes_agent.costs import MAX_NAME_CHARACTERS, own_prices, remove_price, set_price
from hermes_agent.local import built_in
from hermes_agent.providers import catalog, selection
from hermes_agent.providers.apis import PRESETS, PRESETS_BY_NAME, ModelChoice
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.config.price_entries import ALLOWED_PRICE, MAX_PRICE, OwnPrice, is_price
from hermes_dashboard.caches import CachedValue
from hermes_dashboard.models.text import Text, problems
from hermes_dashboard.resources.health import NO_MODEL, problem_of, usable_model
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_agent.providers.apis import ProviderPreset
    from hermes_core.config.file import Settings
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
    """The routes of models: the choice, the set-up and the catalog."""
    routes = ResourceRouter("/api/models", tag="chat")
    available = CachedValue(context.models, KEEP_SECONDS)  # local servers are asked for theirs

    @routes.get("")
    def models() -> Models:
        """The selected model, the models of local servers, and the built-in model."""
        items = available.get()
        current = next((item.name for item in items if item.is_current), None)
        return Models(current=current, items=items)

    @routes.put("/default", responses=problems(400))
    def set_default(body: DefaultModel) -> SavedModel:
        """Use a model of a hosted provider by default; other endpoints need a terminal."""
        preset = PRESETS_BY_NAME[body.provider]
        choice = ModelChoice(preset.api, body.model, preset.base_url)
        notes = selection.save_choice(ConfigFile.of_home(), choice, body.key.strip())
        return SavedModel(provider=body.provider, model=body.model, notes=notes)

    _add_setup(routes)
    _add_catalog(routes)
    return routes


def available_models() -> list[Model]:
    """The selectable models: the current one, local servers' and the built-in one."""
    choice = usable_model(ConfigFile.of_home().settings())
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


def _add_setup(routes: ResourceRouter) -> None:
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
            providers=[_hosted_provider(settings, preset) for preset in PRESETS],
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


def _hosted_provider(settings: Settings, preset: ProviderPreset) -> HostedProvider:
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


MAX_SHOWN: Final = 200
ModelName = Annotated[
    str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=r"^[^\x00-\x1f\x7f]+$")
]


def _checked_price(value: object) -> object:
    if value is None or is_price(value):
        return value
    raise PydanticCustomError("price", f"The price {ALLOWED_PRICE}.")


Price = Annotated[
    float, Field(ge=0, le=MAX_PRICE, allow_inf_nan=False), BeforeValidator(_checked_price)
]


class CatalogProvider(BaseModel):
    """A provider whose models are listed."""

    title: Text
    base_url: Text
    models: int
    fetched_at: float | None
    problem: Text


class CatalogModelView(BaseModel):
    """A model; prices are dollars per million tokens, null where unknown."""

    name: Text = Field(description="what selects it, e.g. in `hermes models use`")
    model: Text
    provider: Text
    window: int = Field(description="tokens; 0 where unknown")
    input_price: float | None
    output_price: float | None
    is_own_price: bool
    is_current: bool


class ModelPrice(BaseModel):
    """The price of a model in dollars per million tokens."""

    model: ModelName
    input: Price
    output: Price
    cache_read: Price | None = None
    cache_write: Price | None = None


class ModelCatalogView(BaseModel):
    """Providers, the models that match a search, and the user's own prices."""

    providers: list[CatalogProvider]
    items: list[CatalogModelView]
    total: int = Field(description="matching models; only some of very many are in the list")
    prices: list[ModelPrice]


def _add_catalog(routes: ResourceRouter) -> None:
    @routes.get("/catalog", responses=problems(400))
    def show_catalog(
        search: Annotated[str, Query(max_length=200)] = "",
        refresh: Annotated[bool, Query(description="fetch the lists again")] = False,
    ) -> ModelCatalogView:
        """The models of the configured providers; lists are kept for a day."""
        config = ConfigFile.of_home()
        settings = config.settings()
        lists = catalog.ModelCatalog().load(catalog.known_endpoints(settings), is_refreshed=refresh)
        found = catalog.search(catalog.all_models(lists), search)
        current = selection.selected_model(settings)
        current_name = (
            f"{catalog.endpoint_of(current).prefix}{current.model}" if current is not None else ""
        )
        found.sort(key=lambda model: model.name != current_name)
        return ModelCatalogView(
            providers=[_catalog_provider(each) for each in lists],
            items=[
                CatalogModelView(**model._asdict(), is_current=model.name == current_name)
                for model in found[:MAX_SHOWN]
            ],
            total=len(found),
            prices=[
                ModelPrice(model=name, **price._asdict())
                for name, price in sorted(own_prices(config).items())
            ],
        )

    @routes.put("/prices", responses=problems(400))
    def put_price(price: ModelPrice) -> ModelPrice:
        """Set the price of a model; costs are estimated with it from now on."""
        own = OwnPrice(price.input, price.output, price.cache_read, price.cache_write)
        set_price(ConfigFile.of_home(), price.model, own)
        return price

    @routes.remove("/prices", 400, 404)
    def delete_price(model: Annotated[ModelName, Query()]) -> None:
        """Use the known price of a model again."""
        if not remove_price(ConfigFile.of_home(), model):
            raise HTTPException(404, f"No price of your own for {model}.")


def _catalog_provider(listed: catalog.EndpointModels) -> CatalogProvider:
    return CatalogProvider(
        title=listed.endpoint.title,
        base_url=listed.endpoint.url,
        models=len(listed.models),
        fetched_at=listed.fetched_at or None,
        problem=listed.problem,
    )
