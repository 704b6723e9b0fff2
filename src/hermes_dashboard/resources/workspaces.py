"""Working folders of conversations on the page: which are allowed, and the default.

The agent may change files in its working folder without asking, so the root of all files, a
parent of the home folder and the Hermes folder are refused, and the home folder is taken only
if the user confirms it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import HTTPException
from pydantic import BaseModel, Field

from hermes_core.errors import UsageError
from hermes_core.paths import private_folder
from hermes_dashboard.caches import CachedValue
from hermes_dashboard.models.text import Text, problems
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from hermes_dashboard.context import DashboardContext
    from hermes_state.store import SessionDB


MAX_RECENT: Final = 12
RECENT_SESSIONS: Final = 100
KEEP_SECONDS: Final = 3.0
HOME_QUESTION: Final = (
    "{folder} is your home folder: the agent could change every file in it without asking."
)
ACCEPT_HOME: Final = "accept_home"  # parameter of a request: the user has confirmed the home folder


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


class HomeFolderError(UsageError):
    """The home folder is a working folder only if the user confirms it."""


class Workspaces:
    """The working folders that the page of one dashboard may use."""

    def __init__(self, hermes_home: Path, start_folder: Path) -> None:
        self._hermes_home = hermes_home.resolve()
        self._start_folder = start_folder
        self._recent: CachedValue[list[str]] | None = None

    def default(self) -> Path:
        """Where the dashboard was started; a folder of its own if that is not allowed."""
        try:
            return self.check(str(self._start_folder))
        except UsageError:
            return private_folder(self._hermes_home / "workspaces" / "owner")

    def check(self, text: str, *, accepts_home: bool = False) -> Path:
        """The folder named by *text*; UsageError if it must not be a working folder."""
        try:
            folder = Path(text).expanduser()
            is_folder = folder.is_absolute() and folder.is_dir()
        except (OSError, ValueError, RuntimeError):
            is_folder = False
        if not is_folder:
            raise UsageError(f"{text} is not a folder. Enter an absolute path, or one with ~.")
        folder = folder.resolve()
        home = Path.home().resolve()
        if folder in home.parents:
            raise UsageError(f"{folder} contains the home folder; choose a folder inside it.")
        own = self._hermes_home / "workspaces"
        is_inside = folder == self._hermes_home or self._hermes_home in folder.parents
        if is_inside and own not in folder.parents:
            raise UsageError(f"{folder} belongs to Hermes; choose another folder.")
        if folder == home and not accepts_home:
            raise HomeFolderError(HOME_QUESTION.format(folder=folder))
        return folder

    def of_session(self, db: SessionDB, session_id: str) -> Path:
        """The folder in which a stored conversation continues; else the default."""
        try:
            session = db.sessions.find(db.lookup.resolve(session_id))
            folder = session.cwd if session is not None else None
            return self.check(folder or "", accepts_home=True)
        except UsageError:
            return self.default()

    def recent(self, db: SessionDB) -> list[str]:
        """Folders of recent conversations, latest first; at most some seconds old."""
        if self._recent is None:
            self._recent = CachedValue(lambda: self._find_recent(db), KEEP_SECONDS)
        return self._recent.get()

    def _find_recent(self, db: SessionDB) -> list[str]:
        rows = db.lists.sessions(limit=RECENT_SESSIONS, order_by_last_active=True)
        names = dict.fromkeys(row.session.cwd for row in rows if row.session.cwd)
        return [name for name in names if self._is_allowed(name)][:MAX_RECENT]

    def _is_allowed(self, name: str) -> bool:
        try:
            self.check(name)
        except UsageError:
            return False
        return True
