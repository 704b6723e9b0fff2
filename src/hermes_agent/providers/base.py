"""What a provider is, and how failures of HTTP become words that help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from hermes_agent.events import Failed, FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.messages import ModelRequest
    from hermes_agent.turn_control import Cancel


class Provider(Protocol):
    """A model that can be asked."""

    name: str
    model: str
    base_url: str
    api_mode: str
    window: int  # tokens the model can read at once, as far as is known

    def learn_window(self) -> int:
        """The window, asked for once where it is only assumed and asking is quick."""

    def stream(self, request: ModelRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
        """Ask; deltas as they come, then exactly one Reply or Failed."""

    def close(self) -> None:
        """Let go of connections."""


# How servers say that a conversation is longer than the model can read.
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


def http_failure(status: int, text: str, provider: Provider, after: float | None) -> Failed:
    """What an HTTP status means for the user."""
    words = text.lower()
    if status == 402 or (status in (400, 429) and any(word in words for word in CREDIT_PHRASES)):
        return Failed(
            FailureKind.CREDIT,
            f"{provider.name} reports that the account has no credit left.",
            "Add credit there, or choose another model with `hermes models use`.",
        )
    if status in (400, 413, 422, 500) and is_about_context(text):
        return too_long(provider.model)
    if status == 429:
        return Failed(
            FailureKind.LIMIT,
            f"{provider.name} rate limit reached (429).",
            is_passing=True,
            retry_after=after,
        )
    if status >= 500 or status in (408, 409, 425):
        return Failed(
            FailureKind.SERVER,
            f"Server error ({status}) from {provider.name}.",
            is_passing=True,
            retry_after=after,
        )
    return _refusal(status, text, provider)


def is_about_context(text: str) -> bool:
    """Whether a server's words mean that the conversation is too long for the model."""
    words = text.lower()
    return any(word in words for word in CONTEXT_PHRASES)


def too_long(model: str) -> Failed:
    """The model cannot read all of it."""
    return Failed(
        FailureKind.CONTEXT,
        f"The conversation exceeds the context window of {model}.",
        "Shorten it with /compress, start a new one with /new, or choose a model with a larger "
        "context window.",
    )


def _refusal(status: int, text: str, provider: Provider) -> Failed:
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
    """Nobody answers there."""
    return Failed(
        FailureKind.UNREACHABLE,
        f"Cannot connect to {provider.base_url} ({reason}).",
        "Check the URL and that the server is running; `hermes models test` tries again.",
        is_passing=True,
    )


def timed_out(provider: Provider, seconds: float) -> Failed:
    """It took too long."""
    return Failed(
        FailureKind.TIMEOUT,
        f"{provider.name} sent no data for {seconds:.0f} seconds.",
        is_passing=True,
    )


def interrupted() -> Failed:
    """The user has stopped it."""
    return Failed(FailureKind.INTERRUPTED, "Interrupted.")
