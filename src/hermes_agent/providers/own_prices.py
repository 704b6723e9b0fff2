"""Prices of models that the user has set: the section `prices` of config.yaml.

They replace the prices of the providers' lists and of the table of known models, for example for
a negotiated rate or for a server of one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_core.config.file import ConfigFile
from hermes_core.config.price_entries import ALLOWED_PRICE, SECTION, OwnPrice, is_price, parse_price
from hermes_core.config.yaml_reader import is_set
from hermes_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_agent.providers.catalog import CatalogModel

MAX_NAME_CHARACTERS: Final = 200


def own_prices(config: ConfigFile | None = None) -> dict[str, OwnPrice]:
    """The prices by model, without invalid entries, which `hermes doctor` reports."""
    block = (config or ConfigFile.of_home()).block(SECTION)
    found = {name: parse_price(fields) for name, fields in block.items()}
    return {name: price for name, price in found.items() if price is not None}


def own_price(model: str) -> OwnPrice | None:
    """The price of a model, if the user has set one."""
    if not is_set(SECTION):
        return None
    try:
        return own_prices().get(model)
    except ConfigError:
        return None  # a turn continues; `hermes doctor` reports the section


def set_price(config: ConfigFile, model: str, price: OwnPrice) -> None:
    """Store the price of a model."""
    if not model.strip() or len(model) > MAX_NAME_CHARACTERS:
        raise ConfigError(f"The name of a model has 1 to {MAX_NAME_CHARACTERS} characters.")
    for name, value in price._asdict().items():
        if value is not None and not is_price(value):
            raise ConfigError(f"{name} {ALLOWED_PRICE}.")
    for name, value in price._asdict().items():
        config.set_option(SECTION, model, name, None if value is None else float(value))


def remove_price(config: ConfigFile, model: str) -> bool:
    """Use the known price of a model again; whether another one was set."""
    if model not in config.block(SECTION):
        return False
    config.set_entry(SECTION, model, None)
    return True


def with_own_prices(
    models: Iterable[CatalogModel], prices: dict[str, OwnPrice]
) -> list[CatalogModel]:
    """The models with the user's prices where there are any."""
    return [
        model._replace(input_price=own.input, output_price=own.output, is_own_price=True)
        if (own := prices.get(model.model))
        else model
        for model in models
    ]
