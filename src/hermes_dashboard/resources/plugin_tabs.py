"""Tabs of plugins: the list and the files."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from fastapi import HTTPException
from pydantic import BaseModel
from starlette.responses import FileResponse

from hermes_dashboard.models.text import problems
from hermes_dashboard.routes import ResourceRouter
from hermes_dashboard.safe_path import resolve_inside

if TYPE_CHECKING:
    from hermes_dashboard.plugins.apis import PluginApis
    from hermes_dashboard.plugins.tabs import Tab

SUFFIXES: Final = frozenset(
    {
        ".js", ".mjs", ".css", ".json", ".html", ".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp",
        ".ico", ".woff2", ".woff", ".ttf", ".otf", ".map",
    }
)  # fmt: skip
MEDIA_TYPES: Final = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".woff": "font/woff",
}


class TabPosition(BaseModel):
    """Position of a tab."""

    path: str
    position: str
    override: str | None
    hidden: bool


class PluginTab(BaseModel):
    """A tab, for the page."""

    name: str
    label: str
    description: str
    icon: str
    version: str
    tab: TabPosition
    slots: list[str]
    entry: str
    css: str | None
    has_api: bool
    source: Literal["bundled", "user"]
    error: str | None


def router(apis: PluginApis) -> ResourceRouter:
    """The routes of the list and the files."""
    routes = ResourceRouter(tag="plugins")

    @routes.get("/api/dashboard/plugins")
    def listed() -> list[PluginTab]:
        """All tabs; an unusable one has its error, as soon as that is known."""
        return [_tab_view(tab, apis.error_of(tab)) for tab in apis.tabs().values()]

    @routes.get(
        "/dashboard-plugins/{name}/{path:path}",
        response_class=FileResponse,
        responses=problems(404),
    )
    def file(name: str, path: str) -> FileResponse:
        """A file of a plugin's dashboard folder."""
        tab = apis.tabs().get(name)
        suffix = PurePosixPath(path).suffix.lower()
        resolved = resolve_inside(tab.folder, path) if tab and suffix in SUFFIXES else None
        if resolved is None or resolved.suffix.lower() not in SUFFIXES:
            raise HTTPException(404, "No such file in an enabled plugin.")
        media_type = (
            MEDIA_TYPES.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"
        )
        return FileResponse(resolved, media_type=media_type, headers={"Cache-Control": "no-store"})

    return routes


def _tab_view(tab: Tab, error: str | None) -> PluginTab:
    fields = {**vars(tab), "path": tab.path or f"/{tab.name}", "hidden": tab.is_hidden}
    return PluginTab.model_validate(
        {
            **fields,
            "tab": fields,
            "has_api": tab.api is not None,
            "source": tab.origin,
            "error": error,
        }
    )
