"""The models of all configured providers with window and price, and prices of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException, Query, Response
from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from hermes_agent.costs import MAX_NAME_CHARACTERS, own_prices, remove_price, set_price
from hermes_agent.providers import catalog, selection
from hermes_core.config.file import ConfigFile
from hermes_core.config.price_entries import ALLOWED_PRICE, MAX_PRICE, OwnPrice, is_price
from hermes_dashboard.models.text import Text, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext

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


def router(_context: DashboardContext) -> ResourceRouter:
    """The routes of models and prices."""
    routes = ResourceRouter("/api/models", tag="chat")

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
            providers=[_provider(each) for each in lists],
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

    @routes.delete(
        "/prices", status_code=204, response_class=Response, responses=problems(400, 404)
    )
    def delete_price(model: Annotated[ModelName, Query()]) -> None:
        """Use the known price of a model again."""
        if not remove_price(ConfigFile.of_home(), model):
            raise HTTPException(404, f"No price of your own for {model}.")

    return routes


def _provider(listed: catalog.EndpointModels) -> CatalogProvider:
    return CatalogProvider(
        title=listed.endpoint.title,
        base_url=listed.endpoint.url,
        models=len(listed.models),
        fetched_at=listed.fetched_at or None,
        problem=listed.problem,
    )
