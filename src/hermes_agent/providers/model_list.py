"""What models an address offers to a key: asked once, while setting up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.messages import ModelRequest
from hermes_agent.providers.base import http_failure, timed_out, unreachable
from hermes_agent.turn_control import Cancel

if TYPE_CHECKING:
    import httpx2

    from hermes_agent.providers.base import Provider
    from hermes_agent.providers.selection import ModelChoice

TRIAL_PROMPT: Final = "Say hello in one short sentence."


class Trial(NamedTuple):
    """What came of it; seconds until the first sign of life and until the end."""

    text: str
    first_seconds: float
    seconds: float
    failure: Failed | None = None


def run_trial(provider: Provider) -> Trial:
    """Ask once, without a second try; the provider is let go of afterwards."""
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
    return Trial(text, first or seconds, seconds, failure)


LIST_SECONDS: Final = 15.0
# Words in the names of models that do not talk.
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


class ModelList(NamedTuple):
    """Names of models that talk, the newest first where that is known; or why there are none."""

    names: list[str]
    failure: Failed | None = None


def list_models(choice: ModelChoice) -> ModelList:
    """Ask the address of *choice*; its model may be empty."""
    import httpx2  # noqa: PLC0415 - only while setting up

    provider = choice.provider()
    try:
        answer = httpx2.get(
            f"{provider.base_url.rstrip('/')}/models",
            headers=_headers(choice),
            timeout=LIST_SECONDS,
        )
    except httpx2.TimeoutException:
        return ModelList([], timed_out(provider, LIST_SECONDS))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return ModelList([], unreachable(provider, str(error) or type(error).__name__))
    finally:
        provider.close()
    return _read(answer, provider)


def _headers(choice: ModelChoice) -> dict[str, str]:
    if choice.api == "anthropic":
        from hermes_agent.providers.anthropic import VERSION  # noqa: PLC0415 - one of several

        return {"x-api-key": choice.key, "anthropic-version": VERSION}
    return {"Authorization": f"Bearer {choice.key}"} if choice.key else {}


def _read(answer: httpx2.Response, provider: Provider) -> ModelList:
    if answer.status_code != 200:
        return ModelList([], http_failure(answer.status_code, answer.text[:500], provider, None))
    try:
        matches = [item for item in answer.json()["data"] if isinstance(item.get("id"), str)]
    except (ValueError, KeyError, TypeError, AttributeError):
        reason = f"{provider.base_url} returned no model list in a known format."
        return ModelList([], Failed(FailureKind.BROKEN, reason))
    matches.sort(key=_age, reverse=True)
    return ModelList(
        [item["id"] for item in matches if not any(w in item["id"] for w in NON_CHAT_WORDS)]
    )


def _age(model: dict[str, Any]) -> float:
    """When it was made; a list without times keeps its order."""
    created = model.get("created")
    return float(created) if isinstance(created, int | float) else 0.0
