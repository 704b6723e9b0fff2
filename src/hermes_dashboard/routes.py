"""The routes of one resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

from hermes_dashboard.errors import PlainJson
from hermes_dashboard.models.text import problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from fastapi.types import DecoratedCallable
    from starlette.types import Lifespan


class ResourceRouter(APIRouter):
    """The routes of one resource, with the response class of the dashboard."""

    def __init__(
        self, prefix: str = "", *, tag: str, lifespan: Lifespan[FastAPI] | None = None
    ) -> None:
        super().__init__(
            prefix=prefix, tags=[tag], lifespan=lifespan, default_response_class=PlainJson
        )

    def remove(self, path: str, *codes: int) -> Callable[[DecoratedCallable], DecoratedCallable]:
        """Register a DELETE without a response body, which may fail with these codes."""
        return self.delete(
            path, status_code=204, response_class=Response, responses=problems(*codes)
        )
