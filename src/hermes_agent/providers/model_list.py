"""Lists and tests the models of an endpoint during setup."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.failures import http_failure, timed_out, unreachable
from hermes_agent.turn_control import Cancel

if TYPE_CHECKING:
    import httpx2

    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.selection import ModelChoice
    from hermes_agent.providers.server_answers import (
        ListedModel,
        ListedPrices,
        ModelListAnswer,
    )

TRIAL_PROMPT: Final = "Say hello in one short sentence."


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
        for event in provider.stream(request, Cancel()):
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


LIST_SECONDS: Final = 15.0
LONGEST_LIST: Final = {"limit": "1000"}  # Anthropic's lists have pages
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


NO_PRICES: Final[ListedPrices] = {}


class ListedDetails(NamedTuple):
    """What an endpoint reports about a model; prices are dollars per million tokens."""

    name: str
    window: int = 0
    input_price: float | None = None
    output_price: float | None = None


class ModelList(NamedTuple):
    """The chat models, the newest first where dates are known; or the failure."""

    details: list[ListedDetails]
    failure: Failed | None = None

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return [model.name for model in self.details]


def list_models(choice: ModelChoice) -> ModelList:
    """List the models at the endpoint of *choice*; its model may be empty."""
    import httpx2  # noqa: PLC0415 - only needed for lists

    from hermes_agent.providers.http_stream import USER_AGENT, ssl_context  # noqa: PLC0415 - as above

    provider = choice.provider()
    try:
        response = httpx2.get(
            f"{provider.base_url.rstrip('/')}/models",
            headers={"User-Agent": USER_AGENT, **_headers(choice)},
            params=LONGEST_LIST if choice.api == "anthropic" else None,
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


def _headers(choice: ModelChoice) -> dict[str, str]:
    if choice.api == "anthropic":
        from hermes_agent.providers.anthropic import VERSION  # noqa: PLC0415 - one of several

        return {"x-api-key": choice.key, "anthropic-version": VERSION}
    return {"Authorization": f"Bearer {choice.key}"} if choice.key else {}


def _parse_list(response: httpx2.Response, provider: Provider) -> ModelList:
    if response.status_code != 200:
        from hermes_agent.providers.http_stream import error_report  # noqa: PLC0415 - as above

        return ModelList([], http_failure(error_report(response), provider))
    try:
        answer: ModelListAnswer | list[ListedModel] = response.json()
        data = answer if isinstance(answer, list) else answer["data"]  # Together sends a list
        models = [model for model in data if isinstance(model.get("id"), str)]
    except (ValueError, KeyError, TypeError, AttributeError):
        reason = f"{provider.base_url} returned no model list in a known format."
        return ModelList([], Failed(FailureKind.BROKEN, reason))
    models.sort(key=_created_at, reverse=True)
    return ModelList(
        [_details(model) for model in models if not any(w in model["id"] for w in NON_CHAT_WORDS)]
    )


def _details(model: ListedModel) -> ListedDetails:
    windows = (
        model.get("context_length"),
        model.get("context_window"),
        model.get("max_context_length"),
        model.get("max_input_tokens"),
        model.get("max_model_len"),
    )
    prices = model.get("pricing") or NO_PRICES
    return ListedDetails(
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
