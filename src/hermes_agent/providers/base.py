"""The provider protocol, and the failures that HTTP responses are mapped to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.events import Failed, FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.turn_control import Cancel


class Provider(Protocol):
    """A model that answers requests."""

    name: str
    model: str
    base_url: str
    api_mode: str
    window: int  # context window in tokens, as far as is known

    def resolve_window(self) -> int:
        """Return the context window; probe the server once where it is only assumed."""

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Send a request; yield deltas as they arrive, then exactly one Reply or Failed."""

    def close(self) -> None:
        """Close the connections."""


# Phrases in error messages about an exceeded context window.
CONTEXT_PHRASES: Final = (
    "context length",
    "context_length",
    "context limit",
    "context overflow",
    "context size",
    "context window",
    "exceed_context",
    "input is too long",
    "input token count",
    "maximum context",
    "n_ctx",
    "prompt is too long",
    "prompt too long",
    "reduce the length",
    "too many tokens",
)
CREDIT_PHRASES: Final = ("insufficient_quota", "credit", "billing", "payment")


def http_failure(status: int, text: str, provider: Provider, retry_after: float | None) -> Failed:
    """Map an HTTP status and its error text to a failure."""
    failed = _failure_of_status(status, text, provider, retry_after)
    return failed._replace(status_code=status)


def _failure_of_status(
    status: int, text: str, provider: Provider, retry_after: float | None
) -> Failed:
    if status == 402 or (status in (400, 429) and _contains(text, CREDIT_PHRASES)):
        return Failed(
            FailureKind.CREDIT,
            f"{provider.name} reports that the account has no credit left.",
            "Add credit there, or choose another model with `hermes models use`.",
        )
    if status in (400, 413, 422, 500) and is_context_error(text):
        return context_exceeded(provider.model)
    if status == 429:
        return Failed(
            FailureKind.LIMIT,
            f"{provider.name} rate limit reached (429).",
            is_transient=True,
            retry_after=retry_after,
        )
    if status >= 500 or status in (408, 409, 425):
        return Failed(
            FailureKind.SERVER,
            f"Server error ({status}) from {provider.name}.",
            is_transient=True,
            retry_after=retry_after,
        )
    return _client_error(status, text, provider)


def is_context_error(text: str) -> bool:
    """Whether an error text reports an exceeded context window."""
    return _contains(text, CONTEXT_PHRASES)


def _contains(text: str, phrases: tuple[str, ...]) -> bool:
    lowered = text.lower()
    return any(phrase in lowered for phrase in phrases)


def context_exceeded(model: str) -> Failed:
    """The conversation is longer than the model's context window."""
    return Failed(
        FailureKind.CONTEXT,
        f"The conversation exceeds the context window of {model}.",
        "Shorten it with /compress, start a new one with /new, or choose a model with a larger "
        "context window.",
    )


def _client_error(status: int, text: str, provider: Provider) -> Failed:
    if status in (401, 403):
        return Failed(
            FailureKind.KEY,
            f"Authentication failed ({status}): {provider.base_url} rejected the API key.",
            "Run `hermes setup` to enter another one.",
        )
    if status == 404:
        return Failed(
            FailureKind.MODEL,
            f"{provider.base_url} has no model {provider.model!r}.",
            "Run `hermes models list` to see available models.",
        )
    return Failed(FailureKind.REFUSED, f"{provider.name} rejected the request ({status}): {text}")


def unreachable(provider: Provider, reason: str) -> Failed:
    """No connection could be opened."""
    return Failed(
        FailureKind.UNREACHABLE,
        f"Cannot connect to {provider.base_url} ({reason}).",
        "Check the URL and that the server is running; `hermes models test` tries again.",
        is_transient=True,
    )


def timed_out(provider: Provider, seconds: float) -> Failed:
    """The server sent nothing for too long."""
    return Failed(
        FailureKind.TIMEOUT,
        f"{provider.name} sent no data for {seconds:.0f} seconds.",
        is_transient=True,
    )


def interrupted() -> Failed:
    """The user interrupted the request."""
    return Failed(FailureKind.INTERRUPTED, "Interrupted.")
