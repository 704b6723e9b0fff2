"""The routes of one resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter

from hermes_dashboard.errors import PlainJson

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Lifespan


class ResourceRouter(APIRouter):
    """The routes of one resource, with the response class of the dashboard."""

    def __init__(
        self, prefix: str = "", *, tag: str, lifespan: Lifespan[FastAPI] | None = None
    ) -> None:
        super().__init__(
            prefix=prefix, tags=[tag], lifespan=lifespan, default_response_class=PlainJson
        )
