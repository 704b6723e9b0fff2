"""Models with window and price, and prices of one's own that costs are estimated with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_agent.costs import billing_fields
from hermes_agent.messages import Usage
from hermes_agent.providers.apis import OPENAI_API, ModelChoice
from hermes_core.config.file import ConfigFile
from support.model_servers import configured_models

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2 as httpx

CATALOG = "/api/models/catalog"
PRICES = "/api/models/prices"
MODEL = "vendor/model:free 2.0"


@pytest.fixture
def base_url() -> Iterator[str]:
    with configured_models() as choose:
        yield choose("[]").base_url


def test_the_models_of_the_endpoint_are_listed(client: httpx.Client, base_url: str) -> None:
    shown = client.get(CATALOG).json()
    (provider,) = [each for each in shown["providers"] if each["base_url"] == base_url]
    assert (provider["models"] > 0, provider["problem"]) == (True, "")
    assert [model["is_current"] for model in shown["items"]][:1] == [True]
    assert client.get(CATALOG, params={"search": "nothing like it"}).json()["items"] == []
    assert client.get(CATALOG, params={"refresh": "true"}).status_code == 200


def test_a_price_of_ones_own_replaces_the_known_one(client: httpx.Client, base_url: str) -> None:
    model = client.get(CATALOG).json()["items"][0]["model"]
    body = {"model": model, "input": 2, "output": 10.5}
    assert client.put(PRICES, json=body).status_code == 200
    shown = client.get(CATALOG).json()
    item = next(each for each in shown["items"] if each["model"] == model)
    assert (item["input_price"], item["output_price"], item["is_own_price"]) == (2, 10.5, True)
    assert shown["prices"] == [{**body, "cache_read": None, "cache_write": None}]
    choice = ModelChoice(OPENAI_API, model, base_url)
    billed = billing_fields(Usage(1_000_000, 100_000), choice.provider())
    assert billed["estimated_cost_usd"] == pytest.approx(2 + 1.05)
    assert billed["cost_source"] == "config.yaml"
    assert client.delete(PRICES, params={"model": model}).status_code == 204
    assert client.delete(PRICES, params={"model": model}).status_code == 404
    assert billing_fields(Usage(9, 9), choice.provider())["cost_source"] == "local"


def test_a_price_is_changed_and_odd_names_are_kept(client: httpx.Client) -> None:
    for price in ({"input": 1, "output": 2, "cache_read": 0.1}, {"input": 3, "output": 4}):
        assert client.put(PRICES, json={"model": MODEL, **price}).status_code == 200
    block = ConfigFile.of_home().block("prices")
    assert block == {MODEL: {"input": 3.0, "output": 4.0}}
    assert ConfigFile.of_home().check() == []
    assert client.delete(PRICES, params={"model": MODEL}).status_code == 204


@pytest.mark.parametrize(
    "price",
    [
        {"input": -1, "output": 1},
        {"input": 1},
        {"input": 1, "output": 1e12},
        {"input": 1, "output": 10**400},
        {"input": "x", "output": 1},
        {"model": "", "input": 1, "output": 1},
        {"model": "a\nb", "input": 1, "output": 1},
    ],
)
def test_a_price_that_is_none_is_refused(client: httpx.Client, price: dict[str, object]) -> None:
    assert client.put(PRICES, json={"model": MODEL, **price}).status_code == 422
    assert "prices" not in ConfigFile.of_home().sections()


def test_an_invalid_price_in_the_file_is_ignored(client: httpx.Client) -> None:
    ConfigFile.of_home().set_entry("prices", "m", {"input": "cheap"})
    assert client.get(CATALOG).json()["prices"] == []


@pytest.mark.parametrize("field", ["input", "output", "cache_read", "cache_write"])
@pytest.mark.parametrize("value", [-5, 1e12, "x"])
def test_a_wrong_price_is_refused_in_plain_words(
    client: httpx.Client, field: str, value: object
) -> None:
    answer = client.put(PRICES, json={"model": MODEL, "input": 1, "output": 1, field: value})
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert problem["loc"] == ["body", field]
    assert problem["msg"] == "The price must be a number from 0 to 1000000."
