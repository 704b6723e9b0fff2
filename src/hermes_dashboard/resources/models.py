"""The available models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter
from pydantic import BaseModel

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext


class Model(BaseModel):
    """A model, with the name that selects it."""

    name: str
    provider: str
    is_current: bool = False
    is_here: bool = True
    detail: str = ""


class Models(BaseModel):
    """Known models and the selected one."""

    current: str | None
    items: list[Model]


def router(context: DashboardContext) -> APIRouter:
    """The route of the list."""
    routes = APIRouter(tags=["chat"])

    @routes.get("/api/models")
    def models() -> Models:
        """The selected model, the models of local servers, and the built-in model."""
        items = [Model.model_validate(model) for model in context.models()]
        current = next((item.name for item in items if item.is_current), None)
        return Models(current=current, items=items)

    return routes
