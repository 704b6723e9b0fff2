"""Whether everything is sound: what a quick look can tell."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter

from hermes_core.config.file import ConfigFile
from hermes_core.errors import HermesError, StoreError
from hermes_dashboard.models.system import Health

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_dashboard.context import DashboardContext

    Found = tuple[str, str]

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
SCARCE_BYTES: Final = 1024**3
GIGA: Final = 1024**3


def router(parts: DashboardContext) -> APIRouter:
    """The address of the check-up."""
    routes = APIRouter(prefix="/api/health", tags=["health"])

    @routes.get("", response_model=Health)
    def show_health() -> dict[str, Any]:
        """Quick checks only; `hermes doctor` runs all checks."""
        checks = examine(parts)
        is_fine = all(one["status"] == OK for one in checks)
        return {"status": "ok" if is_fine else "attention", "checks": checks}

    return routes


def examine(parts: DashboardContext) -> list[dict[str, str]]:
    """Every check; one that cannot be done is a finding."""
    looks: dict[str, Callable[[DashboardContext], Found]] = {
        "history": _history,
        "journal": _journal,
        "index": _index,
        "search": _search,
        "analytics": _analytics,
        "disk": _disk,
        "settings": _settings,
        "gateway": _gateway,
        "replies": _replies,
    }
    return [_looked(name, look, parts) for name, look in looks.items()]


def _looked(
    name: str, look: Callable[[DashboardContext], Found], parts: DashboardContext
) -> dict[str, str]:
    try:
        status, detail = look(parts)
    except HermesError as error:
        status, detail = FAIL, str(error)
    return {"name": name, "status": status, "detail": detail}


def _history(parts: DashboardContext) -> Found:
    version = parts.db.engine.version()
    if version < 0:
        raise StoreError(f"another file lies at {parts.db.db_path}; restart the dashboard")
    return OK, str(parts.db.db_path)


def _journal(parts: DashboardContext) -> Found:
    trouble = parts.db.trouble()
    return (OK, "nothing waits") if trouble is None else (FAIL, trouble)


def _index(parts: DashboardContext) -> Found:
    progress = parts.db.index_progress()
    if progress is None:
        return OK, "complete"
    done, total = progress
    return WARN, f"being built: {done} of {total} sessions"


def _search(parts: DashboardContext) -> Found:
    progress = parts.db.search_progress()
    if progress is None:
        return OK, "complete"
    done, total = progress
    return OK, f"{100 * done // max(total, 1)} % indexed; the rest is read when it is asked for"


def _analytics(parts: DashboardContext) -> Found:
    error = parts.analysis.error
    return (OK, "nothing is known to be wrong") if error is None else (WARN, error)


def _disk(parts: DashboardContext) -> Found:
    free = shutil.disk_usage(parts.home).free
    text = f"{free / GIGA:.1f} GB free"
    return (OK, text) if free >= SCARCE_BYTES else (WARN, f"only {text}; make room")


def _settings(_parts: DashboardContext) -> Found:
    problems = [one for one in ConfigFile.of_home().check() if one.is_error]
    return (WARN, problems[0].message) if problems else (OK, "all can be used as written")


def _gateway(parts: DashboardContext) -> Found:
    waiting = parts.db.waiting_places()
    if parts.gateway.state().get("is_running"):
        return OK, f"running, {waiting} chats wait"
    if waiting:
        return WARN, f"{waiting} chats have unanswered messages; run: hermes gateway start"
    return OK, "not running, and nothing waits"


def _replies(parts: DashboardContext) -> Found:
    lost = [one for one in parts.db.unsent_replies() if one["state"] == "failed"]
    if not lost:
        return OK, "none was given up"
    return WARN, f"{len(lost)} could not be sent, the last one: {lost[0]['error']}"
