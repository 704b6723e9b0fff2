"""Quick health checks, for the pages and for programs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel

from hermes_agent.providers import catalog, selection
from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import HermesError, StoreError
from hermes_dashboard.caches import CachedValue
from hermes_dashboard.models.text import Text
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_agent.providers.apis import ModelChoice
    from hermes_core.config.file import Settings
    from hermes_dashboard.context import DashboardContext

    CheckStatus = Literal["ok", "warn", "fail"]
    CheckResult = tuple[CheckStatus, str]
    Check = Callable[[DashboardContext], CheckResult]


NO_MODEL: Final = "No model is configured."
OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
MIN_FREE_BYTES: Final = 1024**3
GIGABYTE: Final = 1024**3
KEEP_SECONDS: Final = 10.0


class Checked(BaseModel):
    """Result of a check."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: Text


class Health(BaseModel):
    """Result of the quick checks."""

    status: Literal["ok", "attention"]
    checks: list[Checked]


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the checks."""
    routes = ResourceRouter("/api/health", tag="health")

    @routes.get("")
    def show_health() -> Health:
        """Quick checks only; `hermes doctor` runs all checks."""
        checks = context.health.run()
        is_fine = all(check.status == OK for check in checks)
        return Health(status="ok" if is_fine else "attention", checks=checks)

    return routes


def usable_model(settings: Settings) -> ModelChoice | None:
    """The model of a new conversation, also that of a local server."""
    return selection.selected_model(settings) or selection.find_local_model()


def problem_of(choice: ModelChoice | None) -> str:
    """Why no conversation can start; empty if one can."""
    if choice is None:
        return NO_MODEL
    missing = catalog.missing_key(choice)
    return "" if missing is None else f"{missing.detail}."


class HealthChecks:
    """The checks of one dashboard.

    A model server on this machine is only looked for, and the settings are only checked, after a
    change of the settings or some seconds.
    """

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._of_configuration = CachedValue(
            lambda: _run_checks(context, CONFIGURATION_CHECKS), KEEP_SECONDS
        )

    def run(self) -> list[Checked]:
        """Run every check; one that raises counts as failed."""
        return [*_run_checks(self._context, STATE_CHECKS), *self._of_configuration.get()]


def _run_checks(context: DashboardContext, checks: dict[str, Check]) -> list[Checked]:
    return [_run_check(name, check, context) for name, check in checks.items()]


def _run_check(name: str, check: Check, context: DashboardContext) -> Checked:
    status: CheckStatus
    try:
        status, detail = check(context)
    except HermesError as error:
        status, detail = FAIL, str(error)
    return Checked(name=name, status=status, detail=with_command_name(detail))


def _history(context: DashboardContext) -> CheckResult:
    version = context.db.engine.version()
    if version < 0:
        raise StoreError(
            f"{context.db.db_path} was replaced by another file; restart the dashboard"
        )
    return OK, context.db.engine.database.place


def _journal(context: DashboardContext) -> CheckResult:
    trouble = context.db.trouble()
    return (OK, "no pending entries") if trouble is None else (FAIL, trouble)


def _index(context: DashboardContext) -> CheckResult:
    progress = context.db.index_progress()
    if progress is None:
        return OK, "complete"
    done, total = progress
    return WARN, f"being built: {done} of {total} sessions"


def _search(context: DashboardContext) -> CheckResult:
    progress = context.db.search.progress()
    if progress is None:
        return OK, "complete"
    done, total = progress
    return OK, f"{100 * done // max(total, 1)} % indexed; the rest is read on demand"


def _analytics(context: DashboardContext) -> CheckResult:
    error = context.analysis.error
    return (OK, "no problems") if error is None else (WARN, error)


def _disk(context: DashboardContext) -> CheckResult:
    free = shutil.disk_usage(context.home).free
    text = f"{free / GIGABYTE:.1f} GB free"
    return (OK, text) if free >= MIN_FREE_BYTES else (WARN, f"only {text}; free up disk space")


def _settings(_context: DashboardContext) -> CheckResult:
    problems = [problem for problem in ConfigFile.of_home().check() if problem.is_error]
    return (WARN, problems[0].message) if problems else (OK, "all valid")


def _model(_context: DashboardContext) -> CheckResult:
    choice = usable_model(ConfigFile.of_home().settings())
    problem = problem_of(choice)
    if problem:
        return WARN, f"{problem} Choose one on the page Chat, or run `hermes setup`."
    return OK, "" if choice is None else choice.model


def _gateway(context: DashboardContext) -> CheckResult:
    waiting = context.db.inbox.waiting_places()
    state = context.gateway.state()
    if state.problems:
        return WARN, "; ".join(state.problems)
    if state.is_running:
        return OK, f"running, {waiting} chats waiting"
    if waiting:
        return WARN, f"{waiting} chats have unanswered messages; run `hermes gateway start`"
    return OK, "not running, no chats waiting"


def _replies(context: DashboardContext) -> CheckResult:
    failed = [reply for reply in context.db.chats.unsent_replies() if reply.state == "failed"]
    if not failed:
        return OK, "no failed replies"
    return WARN, f"{len(failed)} failed to send; last error: {failed[0].error}"


STATE_CHECKS: Final[dict[str, Check]] = {
    "history": _history,
    "journal": _journal,
    "index": _index,
    "search": _search,
    "analytics": _analytics,
    "disk": _disk,
    "gateway": _gateway,
    "replies": _replies,
}
CONFIGURATION_CHECKS: Final[dict[str, Check]] = {"settings": _settings, "model": _model}
