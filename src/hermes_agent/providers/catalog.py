"""The models of all providers whose key is known, with context window and price.

Lists are fetched from the providers and kept in `cache/models.json` in the Hermes folder. The table
of known models fills in what a provider does not report.
"""

from __future__ import annotations

import difflib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, NotRequired, TypedDict

from hermes_agent.costs import own_prices
from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest
from hermes_agent.providers import selection
from hermes_agent.providers.apis import OPENAI_API, ModelCheck, ModelChoice, provider_of, providers
from hermes_agent.providers.failures import (
    crashed,
    http_failure,
    timed_out,
    unreachable,
)
from hermes_agent.providers.retry import events_of
from hermes_agent.turn_control import Cancel
from hermes_core.clock import SystemClock
from hermes_core.isolate import Failure, attempt
from hermes_core.json_files import read_json, write_json
from hermes_core.known_models import find_known_model
from hermes_core.paths import hermes_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import httpx2

    from hermes_agent.providers.base import Provider
    from hermes_core.clock import Clock
    from hermes_core.config.file import Settings
    from hermes_core.config.price_entries import OwnPrice

MAX_AGE_SECONDS: Final = 24 * 3600.0
MAX_SUGGESTIONS: Final = 5
FETCH_THREADS: Final = 8
LIST_SECONDS: Final = 15.0
MILLION: Final = 1_000_000
# Parts of the names of models without chat.
NON_CHAT_WORDS: Final = (
    "audio",
    "dall-e",
    "embed",
    "image",
    "moderation",
    "rerank",
    "realtime",
    "sora",
    "transcribe",
    "tts",
    "whisper",
)
TRIAL_PROMPT: Final = "Say hello in one short sentence."
# Failures that the user has to repair; others may pass.
LASTING_FAILURES: Final = frozenset({FailureKind.KEY, FailureKind.FORBIDDEN, FailureKind.MODEL})


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
        """Its base URL; the name of a provider without one."""
        return self.choice.url or self.prefix


class ModelFacts(TypedDict):
    """A model in a list and in the file; prices are dollars per million tokens."""

    id: str
    window: int
    input_price: float | None
    output_price: float | None


class CachedList(TypedDict):
    """The list of an endpoint in the file."""

    fetched_at: float
    models: list[ModelFacts]


class EndpointModels(NamedTuple):
    """The models of an endpoint; with a problem, they are from an older list or missing."""

    endpoint: CatalogEndpoint
    models: list[CatalogModel]
    fetched_at: float = 0.0
    problem: str = ""


def known_endpoints(settings: Settings) -> list[CatalogEndpoint]:
    """The endpoint of the selected model, providers with a key, and running local servers."""
    choice = selection.selected_model(settings)
    endpoints = [endpoint_of(choice)] if choice is not None and choice.api.has_list else []
    for preset in providers():
        found = selection.known_key(settings, preset)
        if found is not None and preset.api.has_list:
            choice = ModelChoice(preset.api, "", preset.base_url, found.key)
            if found.base_url:
                choice = preset.elsewhere("", found)
            endpoints.append(endpoint_of(choice))
    endpoints += [
        CatalogEndpoint(
            server.name, f"{server.base_url}#", ModelChoice(OPENAI_API, "", server.base_url)
        )
        for server in selection.local_servers()
        if selection.list_served_models(server)
    ]
    unique = {endpoint.url: endpoint for endpoint in reversed(endpoints)}
    return list(reversed(unique.values()))


def endpoint_of(choice: ModelChoice) -> CatalogEndpoint:
    """The endpoint of a model."""
    preset = provider_of(choice)
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
        return [
            each._replace(models=[_with_own_price(model, prices) for model in each.models])
            for each in lists
        ]

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


def _with_own_price(model: CatalogModel, prices: dict[str, OwnPrice]) -> CatalogModel:
    own = prices.get(model.model)
    if own is None:
        return model
    return model._replace(input_price=own.input, output_price=own.output, is_own_price=True)


def _to_cache(models: list[CatalogModel]) -> list[ModelFacts]:
    return [
        _facts(model.model, model.window, model.input_price, model.output_price) for model in models
    ]


def _facts(
    name: str, window: int = 0, input_price: float | None = None, output_price: float | None = None
) -> ModelFacts:
    return {"id": name, "window": window, "input_price": input_price, "output_price": output_price}


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
    found = list_models(endpoint.choice)
    if found.failure is not None:
        problem = found.failure.message
        empty: CachedList = {"fetched_at": 0.0, "models": []}
        return _models(endpoint, kept or empty, problem)
    fresh: CachedList = {
        "fetched_at": now,
        "models": [_completed(endpoint.url, model) for model in found.models],
    }
    return _models(endpoint, fresh)


def _completed(url: str, model: ModelFacts) -> ModelFacts:
    """What a provider reports about a model, completed from the table of known models."""
    known = find_known_model(url, model["id"])
    if known is None:
        return model
    input_price, output_price = model["input_price"], model["output_price"]
    return _facts(
        model["id"],
        model["window"] or known.window,
        known.input if input_price is None else input_price,
        known.output if output_price is None else output_price,
    )


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
    if not choice.api.has_list:
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


# The list of an endpoint


class ListedPrices(TypedDict, total=False):
    """Prices: per token (OpenRouter) or per million tokens (Together)."""

    prompt: str | float
    completion: str | float
    input: float
    output: float


class ListedModel(TypedDict, total=False):
    """A model in the answer of `GET /models`; servers add fields of their own."""

    id: str
    created: float
    context_length: int
    context_window: int
    max_context_length: int
    max_input_tokens: int
    max_model_len: int
    pricing: ListedPrices | None


class GoogleModel(TypedDict, total=False):
    """A model in the list of Google's own API."""

    name: str
    inputTokenLimit: int


class ModelListAnswer(TypedDict):
    """The answer of `GET /models`; Google's own API has `models`."""

    data: list[ListedModel]
    models: NotRequired[list[GoogleModel]]


NO_PRICES: Final[ListedPrices] = {}


class ModelList(NamedTuple):
    """The chat models, the newest first where dates are known; or the failure."""

    models: list[ModelFacts]
    failure: Failed | None = None

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return [model["id"] for model in self.models]


def list_models(choice: ModelChoice) -> ModelList:
    """List the models at the endpoint of *choice*; its model may be empty."""
    import httpx2  # noqa: PLC0415 - only needed for lists

    from hermes_agent.providers.http_stream import USER_AGENT, ssl_context  # noqa: PLC0415 - as above

    models = choice.api.models
    if models is not None:
        names = attempt(f"models of {choice.api.name}", lambda: list(models()))
        if isinstance(names, Failure):
            return ModelList([], crashed(choice.api.title, names))
        return ModelList([_facts(str(name)) for name in names])
    provider = choice.provider()
    try:
        response = httpx2.get(
            f"{provider.base_url.rstrip('/')}/{choice.api.list_path}",
            headers={"User-Agent": USER_AGENT, **choice.api.key_headers(choice.key)},
            timeout=LIST_SECONDS,
            verify=ssl_context(),
        )
    except httpx2.TimeoutException:
        return ModelList([], timed_out(provider, LIST_SECONDS))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return ModelList([], unreachable(provider, str(error) or type(error).__name__))
    finally:
        provider.close()
    return _parse_list(response, provider)


def _parse_list(response: httpx2.Response, provider: Provider) -> ModelList:
    if response.status_code != 200:
        from hermes_agent.providers.http_stream import error_report  # noqa: PLC0415 - as above

        return ModelList([], http_failure(error_report(response), provider))
    try:
        answer: ModelListAnswer | list[ListedModel] = response.json()
        if isinstance(answer, list):  # Together
            data = answer
        elif "models" in answer:  # Google
            data = [
                {"id": each["name"], "max_input_tokens": each.get("inputTokenLimit", 0)}
                for each in answer["models"]
            ]
        else:
            data = answer["data"]
        models = [model for model in data if isinstance(model.get("id"), str)]
    except (ValueError, KeyError, TypeError, AttributeError):
        reason = f"{provider.base_url} returned no model list in a known format."
        return ModelList([], Failed(FailureKind.BROKEN, reason))
    models.sort(key=_created_at, reverse=True)
    return ModelList(
        [_details(model) for model in models if not any(w in model["id"] for w in NON_CHAT_WORDS)]
    )


def _details(model: ListedModel) -> ModelFacts:
    windows = (
        model.get("context_length"),
        model.get("context_window"),
        model.get("max_context_length"),
        model.get("max_input_tokens"),
        model.get("max_model_len"),
    )
    prices = model.get("pricing") or NO_PRICES
    return _facts(
        model["id"].removeprefix("models/"),  # Google's prefix
        next((window for window in windows if isinstance(window, int) and window > 0), 0),
        _price(prices.get("prompt"), prices.get("input")),
        _price(prices.get("completion"), prices.get("output")),
    )


def _price(per_token: object, per_million: object) -> float | None:
    """Dollars per million tokens; negative numbers mean that it varies."""
    for value, factor in ((per_token, MILLION), (per_million, 1)):
        try:
            price = float(value) * factor  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        return round(price, 6) if price >= 0 else None
    return None


def _created_at(model: ListedModel) -> float:
    """The creation time; a list without times keeps its order."""
    created = model.get("created")
    return float(created) if isinstance(created, int | float) else 0.0


# Whether a model can be used


def missing_key(choice: ModelChoice) -> ModelCheck | None:
    """The problem of a model of a hosted provider without an API key; None if there is none."""
    setting = selection.missing_key_setting(choice)
    if not setting:
        return None
    advice = f"Run `hermes setup`, or `hermes config set {setting}`"
    return ModelCheck("failed", f"{choice.model}: the API key is missing", advice)


def check_model(choice: ModelChoice) -> ModelCheck:
    """Whether the key is accepted, and the endpoint lists the model."""
    problem = missing_key(choice)
    if problem is not None:
        return problem
    if choice.api.check is not None:
        return choice.api.check(choice)
    if not choice.api.has_list:
        return ModelCheck("ok", f"{choice.model} of {choice.api.title}, which lists no models")
    listed = list_models(choice)
    if listed.failure is not None:
        is_lasting = listed.failure.kind in LASTING_FAILURES
        level = "failed" if is_lasting else "warning"
        return ModelCheck(level, listed.failure.message, listed.failure.advice)
    if listed.names and choice.model not in {*listed.names, *_untagged(listed.names)}:
        detail = f"{choice.model} is not in the list of its endpoint"
        return ModelCheck("warning", detail, "Run `hermes models` to choose another one")
    return ModelCheck("ok", f"{choice.model}; the endpoint answers and accepts the key")


def _untagged(names: list[str]) -> list[str]:
    return [name.removesuffix(":latest") for name in names]


class ModelTestResult(NamedTuple):
    """The result of a test request; seconds until the first event and until the end."""

    text: str
    first_seconds: float
    seconds: float
    failure: Failed | None = None


def run_trial(provider: Provider) -> ModelTestResult:
    """Send one request without retries, then close the provider."""
    began = time.monotonic()
    first: float | None = None
    text, failure = "", None
    try:
        request = ModelRequest([{"role": "user", "content": TRIAL_PROMPT}], [])
        for event in events_of(provider, request, Cancel()):
            first = first if first is not None else time.monotonic() - began
            if isinstance(event, Failed):
                failure = event
            elif isinstance(event, Reply):
                text = event.text
    finally:
        provider.close()
    seconds = time.monotonic() - began
    if failure is None and not text.strip():
        failure = Failed(FailureKind.BROKEN, f"{provider.model} returned an empty answer.")
    return ModelTestResult(text, first or seconds, seconds, failure)
