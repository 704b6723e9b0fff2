"""Server-sent events over HTTP, with timeouts; another thread can cancel a request."""

from __future__ import annotations

import contextlib
import functools
import json
import queue
import socket
import weakref
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx2
import orjson

from hermes_agent.events import Failed, FailureKind, Reply
from hermes_agent.providers.base import http_failure, interrupted, timed_out, unreachable
from hermes_agent.providers.known_models import is_loopback
from hermes_core.daemon_threads import daemon_threads

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Mapping

    from hermes_agent.events import ProviderEvent
    from hermes_agent.providers.base import Provider
    from hermes_agent.turn_control import Cancel

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 300.0
KEEP_ALIVE_SECONDS: Final = 60.0
# Compressed events would arrive late, because compression needs more data.
STREAM_HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
MAX_ERROR_CHARACTERS: Final = 500


class StreamRequest(NamedTuple):
    """A request to a provider; `read` converts the lines of the response to events."""

    provider: Provider
    client: httpx2.Client
    url: httpx2.URL
    body: bytes  # JSON
    headers: dict[str, str]
    read: Callable[[Iterator[str]], Iterator[ProviderEvent]]


def stream_events(post: StreamRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
    """Send a request and yield the events of its response; failures become events.

    The connection is read in its own thread, so that a cancel takes effect at once, also while
    the server sends nothing.
    """
    if cancel.is_requested:
        yield interrupted()
        return
    events: queue.SimpleQueue[ProviderEvent] = queue.SimpleQueue()

    def pump() -> None:
        for event in _stream(post, cancel):
            events.put(event)

    unsubscribe = cancel.on_request(lambda: events.put(interrupted()))
    daemon_threads("hermes-provider").run(pump)
    try:
        while True:
            event = events.get()
            yield event
            if isinstance(event, Reply | Failed):
                return
    finally:
        unsubscribe()


def _stream(post: StreamRequest, cancel: Cancel) -> Iterator[ProviderEvent]:
    provider = post.provider
    try:
        headers = {**post.headers, **STREAM_HEADERS}
        with post.client.stream("POST", post.url, content=post.body, headers=headers) as response:
            unsubscribe = cancel.on_request(lambda: _abort(response))
            try:
                if response.status_code != 200:
                    yield _http_error(provider, response)
                    return
                yield from post.read(_lines(response.iter_raw()))
            finally:
                unsubscribe()
        if post.client.is_closed:  # meanwhile: nobody else closes a connection that is returned now
            response.extensions["network_stream"].close()
    except httpx2.TimeoutException as error:
        is_connect = isinstance(error, httpx2.ConnectTimeout)
        yield timed_out(provider, CONNECT_SECONDS if is_connect else SILENCE_SECONDS)
    except httpx2.ConnectError as error:
        yield unreachable(provider, str(error) or type(error).__name__)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        yield _connection_lost(provider, error, cancel)


def _lines(chunks: Iterator[bytes]) -> Iterator[str]:
    """The lines of a body that arrives in chunks."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def endpoint(base_url: str, path: str) -> httpx2.URL:
    """The address of an operation of an API."""
    return httpx2.URL(f"{base_url.rstrip('/')}/{path}")


def encode(body: Mapping[str, Any]) -> bytes:
    """A body as JSON; text that is not valid Unicode is escaped."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()


def client_for(base_url: str, owner: object) -> httpx2.Client:
    """Create a client for an endpoint; connections are reused between requests.

    It is closed at the latest when *owner* is deleted. A server on this machine is never reached
    through the proxy of the environment.
    """
    client = httpx2.Client(
        base_url=base_url.rstrip("/") + "/",
        limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        verify=ssl_context(),
        trust_env=not is_loopback(base_url),
    )
    weakref.finalize(owner, client.close).atexit = False
    return client


@functools.cache
def ssl_context() -> ssl.SSLContext:
    """The trusted certificates; cached because loading takes 30 ms and a megabyte each time."""
    return httpx2.create_ssl_context()


def reopened(client: httpx2.Client, owner: object) -> httpx2.Client:
    """Return the client, or a new one if it was closed: a closed provider may be used again."""
    if not client.is_closed:
        return client
    return client_for(str(client.base_url), owner)


def _abort(response: httpx2.Response) -> None:
    """Shut the connection down, which wakes the thread that reads the response."""
    stream = response.extensions.get("network_stream")
    connection = stream.get_extra_info("socket") if stream is not None else None
    if connection is not None:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _http_error(provider: Provider, response: httpx2.Response) -> Failed:
    response.read()
    retry_after = response.headers.get("retry-after", "")
    seconds = float(retry_after) if retry_after.replace(".", "", 1).isdigit() else None
    return http_failure(response.status_code, _error_message(response), provider, seconds)


def _error_message(response: httpx2.Response) -> str:
    """The message of an error response, without the JSON around it."""
    with contextlib.suppress(ValueError):
        data = response.json()
        if isinstance(data, dict):
            error = data.get("error", data)
            message = error.get("message") if isinstance(error, dict) else error
            if isinstance(message, str):
                return message[:MAX_ERROR_CHARACTERS]
    return response.text[:MAX_ERROR_CHARACTERS]


def _connection_lost(provider: Provider, error: Exception, cancel: Cancel) -> Failed:
    if cancel.is_requested:
        return interrupted()
    return Failed(
        FailureKind.CUT,
        f"Connection to {provider.name} lost ({type(error).__name__}). Type /retry.",
        is_transient=True,
    )
