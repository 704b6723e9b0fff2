"""Working folders for conversations on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import HTTPException
from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Text, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_dashboard.workspaces import HomeFolderError

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext


class WorkspaceList(BaseModel):
    """The folder of new conversations, and folders of recent ones."""

    default: Text
    recent: list[Text]


class WorkspaceChoice(BaseModel):
    """A folder; `accept_home` confirms the home folder."""

    path: str = Field(min_length=1, max_length=4096)
    accept_home: bool = False


class Workspace(BaseModel):
    """An allowed folder, with its full path."""

    path: Text


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of working folders."""
    routes = ResourceRouter("/api/workspaces", tag="chat")

    @routes.get("", responses=problems(503))
    def list_workspaces() -> WorkspaceList:
        """The default working folder, and those of recent conversations."""
        folders = context.workspaces
        return WorkspaceList(default=str(folders.default()), recent=folders.recent(context.db))

    @routes.post("/check", responses=problems(400, 409))
    def check(body: WorkspaceChoice) -> Workspace:
        """Check a folder; 409 if it is the home folder, which needs `accept_home`."""
        try:
            folder = context.workspaces.check(body.path, accepts_home=body.accept_home)
        except HomeFolderError as error:
            raise HTTPException(409, str(error)) from error
        return Workspace(path=str(folder))

    return routes
