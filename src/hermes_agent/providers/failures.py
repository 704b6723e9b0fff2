"""Failures of providers: HTTP responses and lost connections, with what the user can do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hermes_agent.events import Failed, FailureKind

if TYPE_CHECKING:
    from hermes_agent.providers.base import Provider
    from hermes_core.isolate import Failure

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
    "maximum prompt length",
    "n_ctx",
    "prompt is too long",
    "prompt too long",
    "reduce the length",
    "too many tokens",
)
# Phrases about an account without credit; a single word such as "credit" may mean anything.
CREDIT_PHRASES: Final = (
    "billing hard limit",
    "billing_hard_limit",
    "check your plan and billing",
    "credit balance is too low",
    "credits exhausted",
    "exceeded your current quota",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient_quota",
    "more credits",
    "no credit",
    "not enough credit",
    "out of credit",
)
# The size of the context window in error messages, the most precise form first.
WINDOW_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"maximum (?:context|prompt|input) length (?:is|of|:)?\s*(?:only )?(\d[\d,_]*)",
        r"[\d,_]+ tokens > (\d[\d,_]*)",
        r"context limit: [\d,_]+ \+ [\d,_]+ > (\d[\d,_]*)",
        r"context (?:size|window|length)[^\d]{0,40}?\(?(\d[\d,_]*)",
        r"maximum number of tokens allowed \(?(\d[\d,_]*)",
        r"n_ctx\W{1,4}(\d[\d,_]*)",
        r"max(?:imum)?(?: of)? (\d[\d,_]*) tokens",
    )
)
PAUSE: Final = re.compile(
    r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)? ?(?:ms|[hms])[a-z]*\s?)+)", re.IGNORECASE
)
PAUSE_PART: Final = re.compile(r"(\d+(?:\.\d+)?) ?(ms|[hms])", re.IGNORECASE)
SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
MIN_WINDOW_TOKENS: Final = 256  # a smaller number is not a context window
TRY_AGAIN: Final = "Ask again later with /retry, or choose another model with /model."
MAX_TEXT_CHARACTERS: Final = 500


class ErrorReport(NamedTuple):
    """What a provider reports about a failed request."""

    status: int
    text: str = ""
    code: str = ""  # the code or type of the error, for programs
    request_id: str = ""
    retry_after: float | None = None  # seconds

    @property
    def quoted(self) -> str:
        """The end of a sentence: the provider's own text and the request ID."""
        text = " ".join(self.text.split()).rstrip(".")
        if len(text) > MAX_TEXT_CHARACTERS:  # a trace names its cause at the end
            half = MAX_TEXT_CHARACTERS // 2
            text = f"{text[:half]} … {text[-half:]}"
        request = f" (request ID {self.request_id})" if self.request_id else ""
        return (f": {text}" if text else "") + f"{request}."

    def mentions(self, phrases: tuple[str, ...]) -> bool:
        """Whether the text or the code contains one of *phrases*."""
        lowered = f"{self.code} {self.text}".lower()
        return any(phrase in lowered for phrase in phrases)


def http_failure(report: ErrorReport, provider: Provider) -> Failed:
    """Map an error response to a failure."""
    failed = _failure_of(report, provider)
    return failed._replace(status_code=report.status, request_id=report.request_id)


def _failure_of(report: ErrorReport, provider: Provider) -> Failed:
    status = report.status
    pause = report.retry_after if report.retry_after is not None else pause_in(report.text)
    # Google's limits per minute have the text of an account without credit, and a pause.
    is_limit = status == 429 and pause_in(report.text) is not None
    is_credit = status in (400, 403, 429) and report.mentions(CREDIT_PHRASES) and not is_limit
    if status == 402 or is_credit:
        return Failed(
            FailureKind.CREDIT,
            f"The account at {provider.name} has no credit left ({status}){report.quoted}",
            "Add credit there, or choose another model with /model or `hermes models use`.",
        )
    if status in (400, 413, 422, 500) and report.mentions(CONTEXT_PHRASES):
        return context_exceeded(provider.model, report)
    if status == 429:
        return Failed(
            FailureKind.LIMIT,
            f"Rate limit of {provider.name} reached (429){report.quoted}",
            TRY_AGAIN,
            is_transient=True,
            retry_after=pause,
        )
    if status >= 500 or status in (408, 409, 425):
        return Failed(
            FailureKind.SERVER,
            f"Server error ({status}) from {provider.name}{report.quoted}",
            TRY_AGAIN,
            is_transient=True,
            retry_after=pause,
        )
    return _client_error(report, provider)


def _client_error(report: ErrorReport, provider: Provider) -> Failed:
    status = report.status
    if status == 401:
        return Failed(
            FailureKind.KEY,
            f"Authentication failed (401): {provider.base_url} rejected the API key{report.quoted}",
            "Run `hermes setup` to enter another one.",
        )
    if status == 403:
        return Failed(
            FailureKind.FORBIDDEN,
            f"{provider.base_url} denied access (403){report.quoted}",
            f"Check that the API key may use {provider.model} and that the provider is available "
            "in your region, or choose another model with /model.",
        )
    if status == 404 and _is_about_model(report, provider):
        return Failed(
            FailureKind.MODEL,
            f"{provider.base_url} has no model {provider.model!r} (404){report.quoted}",
            "Run `hermes models list` to see available models.",
        )
    if status in (404, 405):
        return Failed(
            FailureKind.MODEL,
            f"{provider.base_url} has no such API ({status}){report.quoted}",
            endpoint_advice(provider),
        )
    return Failed(
        FailureKind.REFUSED,
        f"{provider.name} rejected the request ({status}){report.quoted}",
        "If the conversation causes it, use /undo or /new; /model chooses another model.",
    )


def _is_about_model(report: ErrorReport, provider: Provider) -> bool:
    return report.mentions(("model", provider.model.lower()))


def endpoint_advice(provider: Provider) -> str:
    """What to check if a server does not answer as its API requires."""
    return (
        "Check the settings llm.base_url (the address usually ends in /v1) and llm.api "
        f"(now {provider.api_name}) with `hermes config list`."
    )


def is_context_error(text: str) -> bool:
    """Whether an error text reports an exceeded context window."""
    return ErrorReport(400, text).mentions(CONTEXT_PHRASES)


def context_exceeded(model: str, report: ErrorReport) -> Failed:
    """The conversation is longer than the model's context window."""
    return Failed(
        FailureKind.CONTEXT,
        f"The conversation exceeds the context window of {model}{report.quoted}",
        "Shorten it with /compress, start a new one with /new, or choose a model with a larger "
        "context window.",
        window=window_in(report.text),
    )


def window_in(text: str) -> int:
    """The size of the context window that an error message names; 0 if it names none."""
    for pattern in WINDOW_PATTERNS:
        match = pattern.search(text)
        if match is not None:
            tokens = int(re.sub(r"[,_]", "", match[1]))
            return tokens if tokens >= MIN_WINDOW_TOKENS else 0
    return 0


def pause_in(text: str) -> float | None:
    """The pause in seconds that an error message asks for; None if it names none."""
    match = PAUSE.search(text)
    if match is None:
        return None
    parts = PAUSE_PART.findall(match[1])
    return sum(float(number) * SECONDS[unit.lower()] for number, unit in parts)


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
        TRY_AGAIN,
        is_transient=True,
    )


def crashed(provider_name: str, failure: Failure) -> Failed:
    """The code of a provider raised an exception."""
    return Failed(FailureKind.BROKEN, f"{provider_name} failed: {failure.reason}.")


def connection_lost(provider_name: str) -> Failed:
    """The connection ended before the answer did."""
    return Failed(
        FailureKind.CUT,
        f"The connection to {provider_name} was lost before the answer was complete.",
        "What arrived is kept. Ask again with /retry; if it happens often, check the network, a "
        "proxy, or the log of the server.",
        is_transient=True,
    )


def invalid_response(provider: Provider, detail: str = "") -> Failed:
    """The response is not what the API describes."""
    about = f": {detail}" if detail else ""
    return Failed(
        FailureKind.BROKEN,
        f"{provider.name} returned an invalid response{about}.",
        endpoint_advice(provider),
    )


def interrupted() -> Failed:
    """The user interrupted the request."""
    return Failed(FailureKind.INTERRUPTED, "Interrupted.")
