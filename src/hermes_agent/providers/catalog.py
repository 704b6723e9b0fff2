"""The models of all providers whose key is known, with context window and price.

Lists are fetched from the providers and kept in `cache/models.json` in the Hermes folder. The table
of known models fills in what a provider does not report.
"""

from __future__ import annotations

import difflib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from hermes_agent.providers import selection
from hermes_agent.providers.own_prices import own_prices, with_own_prices
from hermes_agent.providers.presets import ANTHROPIC, OPENAI, PRESETS, preset_of
from hermes_agent.providers.selection import ModelChoice
from hermes_core.atomic_files import read_json, write_json
from hermes_core.clock import SystemClock
from hermes_core.known_models import find_known_model
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermes_agent.providers.model_list import ListedDetails
    from hermes_core.clock import Clock
    from hermes_core.config.file import Settings

MAX_AGE_SECONDS: Final = 24 * 3600.0
MAX_SUGGESTIONS: Final = 5
FETCH_THREADS: Final = 8
UNLISTED_APIS: Final = frozenset({"local", "script"})


class CatalogModel(NamedTuple):
    """A model; prices are dollars per million tokens, None where unknown."""

    name: str  # what selects it, e.g. groq:MODEL or URL#MODEL
    model: str
    provider: str
    window: int = 0
    input_price: float | None = None
    output_price: float | None = None
    is_own_price: bool = False  # set by the user


class CatalogEndpoint(NamedTuple):
    """An endpoint that lists models."""

    title: str
    prefix: str  # of the names of its models
    choice: ModelChoice

    @property
    def url(self) -> str:
        """The base URL, also where the choice leaves it to its API."""
        default = ANTHROPIC if self.choice.api == "anthropic" else OPENAI
        return (self.choice.base_url or default).rstrip("/")


class CachedModel(TypedDict):
    """A model in the file."""

    id: str
    window: int
    input_price: float | None
    output_price: float | None


class CachedList(TypedDict):
    """The list of an endpoint in the file."""

    fetched_at: float
    models: list[CachedModel]


class EndpointModels(NamedTuple):
    """The models of an endpoint; with a problem, they are from an older list or missing."""

    endpoint: CatalogEndpoint
    models: list[CatalogModel]
    fetched_at: float = 0.0
    problem: str = ""


def known_endpoints(settings: Settings) -> list[CatalogEndpoint]:
    """The endpoint of the selected model, providers with a key, and running local servers."""
    choice = selection.selected_model(settings)
    endpoints = [] if choice is None or choice.api in UNLISTED_APIS else [endpoint_of(choice)]
    for preset in PRESETS:
        found = selection.known_key(settings, preset)
        if found is not None:
            base_url = found.base_url or preset.choice_url
            endpoints.append(endpoint_of(ModelChoice(preset.api, "", base_url, found.key)))
    endpoints += [
        CatalogEndpoint(
            server.name, f"{server.base_url}#", ModelChoice("openai", "", server.base_url)
        )
        for server in selection.local_servers()
        if selection.list_served_models(server)
    ]
    unique = {endpoint.url: endpoint for endpoint in reversed(endpoints)}
    return list(reversed(unique.values()))


def endpoint_of(choice: ModelChoice) -> CatalogEndpoint:
    """The endpoint of a model."""
    preset = preset_of(choice.api, choice.base_url)
    if preset is not None:
        return CatalogEndpoint(preset.title, f"{preset.name}:", choice)
    return CatalogEndpoint(choice.base_url, f"{choice.base_url}#", choice)


class ModelCatalog:
    """Lists of models, cached in a file."""

    def __init__(self, path: Path | None = None, clock: Clock | None = None) -> None:
        self._path = path or hermes_home() / "cache" / "models.json"
        self._clock = clock or SystemClock()

    def load(
        self, endpoints: list[CatalogEndpoint], *, is_refreshed: bool = False
    ) -> list[EndpointModels]:
        """The models of endpoints; lists older than a day are fetched again."""
        cached = self._read()
        now = self._clock.now()

        def one(endpoint: CatalogEndpoint) -> EndpointModels:
            kept = cached.get(endpoint.url)
            if kept is not None and not is_refreshed and self._is_fresh(kept, now):
                return _models(endpoint, kept)
            return _fetched(endpoint, kept, now)

        with ThreadPoolExecutor(FETCH_THREADS) as threads:
            lists = list(threads.map(one, endpoints))
        self._write(cached, lists)
        prices = own_prices()
        return [each._replace(models=with_own_prices(each.models, prices)) for each in lists]

    def _is_fresh(self, kept: CachedList, now: float) -> bool:
        return 0 <= now - kept["fetched_at"] < MAX_AGE_SECONDS

    def _read(self) -> dict[str, CachedList]:
        value = read_json(self._path, {}, self._clock).value
        return value if isinstance(value, dict) else {}

    def _write(self, cached: dict[str, CachedList], lists: list[EndpointModels]) -> None:
        fresh: dict[str, CachedList] = {
            each.endpoint.url: {"fetched_at": each.fetched_at, "models": _to_cache(each.models)}
            for each in lists
            if not each.problem
        }
        if any(cached.get(url) != kept for url, kept in fresh.items()):
            write_json(self._path, {**cached, **fresh})


def _to_cache(models: list[CatalogModel]) -> list[CachedModel]:
    return [
        {
            "id": model.model,
            "window": model.window,
            "input_price": model.input_price,
            "output_price": model.output_price,
        }
        for model in models
    ]


def _models(endpoint: CatalogEndpoint, kept: CachedList, problem: str = "") -> EndpointModels:
    models = [
        CatalogModel(
            f"{endpoint.prefix}{model['id']}",
            model["id"],
            endpoint.title,
            model["window"],
            model["input_price"],
            model["output_price"],
        )
        for model in kept["models"]
    ]
    return EndpointModels(endpoint, models, kept["fetched_at"], problem)


def _fetched(endpoint: CatalogEndpoint, kept: CachedList | None, now: float) -> EndpointModels:
    from hermes_agent.providers.model_list import list_models  # noqa: PLC0415 - needs HTTP

    found = list_models(endpoint.choice)
    if found.failure is not None:
        problem = found.failure.message
        empty: CachedList = {"fetched_at": 0.0, "models": []}
        return _models(endpoint, kept or empty, problem)
    fresh: CachedList = {
        "fetched_at": now,
        "models": [_completed(endpoint.url, details) for details in found.details],
    }
    return _models(endpoint, fresh)


def _completed(url: str, details: ListedDetails) -> CachedModel:
    """What a provider reports about a model, completed from the table of known models."""
    known = find_known_model(url, details.name)
    return {
        "id": details.name,
        "window": details.window or (known.window if known else 0),
        "input_price": details.input_price
        if details.input_price is not None
        else (known.input if known else None),
        "output_price": details.output_price
        if details.output_price is not None
        else (known.output if known else None),
    }


# Search


def all_models(lists: Iterable[EndpointModels]) -> Iterator[CatalogModel]:
    """The models of all lists."""
    for each in lists:
        yield from each.models


def search(models: Iterable[CatalogModel], words: str) -> list[CatalogModel]:
    """The models whose name or provider contains all words."""
    wanted = words.lower().split()
    return [
        model
        for model in models
        if all(word in f"{model.name} {model.provider}".lower() for word in wanted)
    ]


def suggestions(models: list[CatalogModel], name: str) -> list[str]:
    """Names like *name*: those that contain it, then similar ones."""
    wanted = name.rpartition("#")[2].rpartition(":")[2] or name
    containing = [model.name for model in search(models, wanted)]
    by_id = {model.model: model.name for model in models}
    similar = [by_id[each] for each in difflib.get_close_matches(wanted, by_id, MAX_SUGGESTIONS)]
    return list(dict.fromkeys([*containing, *similar]))[:MAX_SUGGESTIONS]


def unlisted_problem(choice: ModelChoice, name: str, catalog: ModelCatalog) -> str:
    """Why a model cannot be used: its endpoint does not list it; empty if it may be used."""
    if choice.api in UNLISTED_APIS:
        return ""
    endpoint = endpoint_of(choice)
    (listed,) = catalog.load([endpoint])
    if not listed.models or _is_listed(listed, choice.model):
        return ""
    (listed,) = catalog.load([endpoint], is_refreshed=True)  # it may be newer than the list
    if listed.problem or _is_listed(listed, choice.model):
        return ""
    near = suggestions(listed.models, name)
    hint = f"Did you mean {', '.join(near)}?" if near else "Type /model to see all models."
    return f"{endpoint.title} has no model {choice.model!r}. {hint}"


def _is_listed(listed: EndpointModels, model: str) -> bool:
    names = {each.model for each in listed.models}
    return bool({model, f"{model}:latest", f"models/{model}"} & names)
