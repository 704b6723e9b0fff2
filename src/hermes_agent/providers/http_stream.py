"""Server-sent events over HTTP, with timeouts, and stoppable from another thread."""

from __future__ import annotations

import contextlib
import functools
import queue
import socket
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx2

from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.providers.base import http_failure, interrupted, timed_out, unreachable

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from hermes_agent.events import ProviderEvent
    from hermes_agent.providers.base import Provider
    from hermes_agent.turn_control import Cancel

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 300.0
MAX_ERROR_CHARACTERS: Final = 500


class StreamRequest(NamedTuple):
    """What is sent, by whom and through what; `read` makes events of the lines that come back."""

    provider: Provider
    client: httpx2.Client
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    read: Callable[[Iterator[str]], Iterator[ProviderEvent]]


def stream_events(post: StreamRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
    """Send it and have the lines of the answer read; failures become events.

    The connection has a thread of its own: a stop is obeyed at once, also while a server
    says nothing at all.
    """
    if cancel.is_requested:
        yield interrupted()
        return
    events: queue.SimpleQueue[ProviderEvent] = queue.SimpleQueue()

    def pump() -> None:
        for event in _stream(post, cancel):
            events.put(event)

    forget = cancel.on_request(lambda: events.put(interrupted()))
    threading.Thread(target=pump, name="hermes-provider", daemon=True).start()
    try:
        while True:
            event = events.get()
            yield event
            if isinstance(event, Reply | Failed):
                return
    finally:
        forget()


def _stream(post: StreamRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
    provider = post.provider
    try:
        with post.client.stream(
            "POST", post.path, json=post.body, headers=post.headers
        ) as response:
            forget = cancel.on_request(lambda: _abort(response))
            try:
                if response.status_code != 200:
                    yield _refusal(provider, response)
                    return
                yield from post.read(response.iter_lines())
            finally:
                forget()
    except httpx2.TimeoutException as error:
        is_connect = isinstance(error, httpx2.ConnectTimeout)
        yield timed_out(provider, CONNECT_SECONDS if is_connect else SILENCE_SECONDS)
    except httpx2.ConnectError as error:
        yield unreachable(provider, str(error) or type(error).__name__)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        yield _broken(provider, error, cancel)


def client_for(base_url: str) -> httpx2.Client:
    """A client for one address; connections are kept open between requests."""
    timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    base = base_url.rstrip("/") + "/"
    return httpx2.Client(base_url=base, timeout=timeout, verify=ssl_context())


@functools.cache
def ssl_context() -> ssl.SSLContext:
    """Whom to trust: read once, it takes 30 ms and a megabyte each time."""
    return httpx2.create_ssl_context()


def reopened(client: httpx2.Client) -> httpx2.Client:
    """The client, or one like it where it was closed: who closes may be asked once more."""
    if not client.is_closed:
        return client
    return httpx2.Client(base_url=client.base_url, timeout=client.timeout, verify=ssl_context())


def _abort(response: httpx2.Response) -> None:
    """Wake whoever reads the answer: its connection ends now."""
    stream = response.extensions.get("network_stream")
    raw = stream.get_extra_info("socket") if stream is not None else None
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)


def _refusal(provider: Provider, response: httpx2.Response) -> Failed:
    response.read()
    after = response.headers.get("retry-after", "")
    wait = float(after) if after.replace(".", "", 1).isdigit() else None
    return http_failure(response.status_code, _reason(response), provider, wait)


def _reason(response: httpx2.Response) -> str:
    """What the server says, without its wrapping."""
    with contextlib.suppress(ValueError):
        data = response.json()
        if isinstance(data, dict):
            error = data.get("error", data)
            message = error.get("message") if isinstance(error, dict) else error
            if isinstance(message, str):
                return message[:MAX_ERROR_CHARACTERS]
    return response.text[:MAX_ERROR_CHARACTERS]


def _broken(provider: Provider, error: Exception, cancel: Cancel) -> Failed:
    if cancel.is_requested:
        return interrupted()
    return Failed(
        FailureKind.CUT,
        f"Connection to {provider.name} lost ({type(error).__name__}). Type /retry.",
        is_passing=True,
    )
