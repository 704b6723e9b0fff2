"""The web server itself, apart: importing it costs what only those should pay who serve."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.applications import Starlette

if TYPE_CHECKING:
    from collections.abc import Iterator

SHUTDOWN_SECONDS: Final = 5


class Server(uvicorn.Server):
    """A server that leaves the signals of the process alone: the gateway has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None."""
        yield


def made() -> tuple[Starlette, Server]:
    """An application without routes, and its server."""
    app = Starlette()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    return app, Server(config)
