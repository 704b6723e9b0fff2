"""Quick health checks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, Literal

from hermes_core.command_name import with_command_name
from hermes_core.config.file import ConfigFile
from hermes_core.errors import HermesError, StoreError
from hermes_dashboard.models.system import Checked, Health
from hermes_dashboard.resources.model_setup import problem_of, usable_model
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_dashboard.context import DashboardContext

    CheckStatus = Literal["ok", "warn", "fail"]
    CheckResult = tuple[CheckStatus, str]

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
MIN_FREE_BYTES: Final = 1024**3
GIGA: Final = 1024**3


def router(context: DashboardContext) -> ResourceRouter:
    """The route of the checks."""
    routes = ResourceRouter("/api/health", tag="health")

    @routes.get("", response_model=Health)
    def show_health() -> Health:
        """Quick checks only; `hermes doctor` runs all checks."""
        checks = run_checks(context)
        is_fine = all(check.status == OK for check in checks)
        return Health(status="ok" if is_fine else "attention", checks=checks)

    return routes


def run_checks(context: DashboardContext) -> list[Checked]:
    """Run every check; a check that raises counts as failed."""
    checks: dict[str, Callable[[DashboardContext], CheckResult]] = {
        "history": _history,
        "journal": _journal,
        "index": _index,
        "search": _search,
        "analytics": _analytics,
        "disk": _disk,
        "settings": _settings,
        "model": _model,
        "gateway": _gateway,
        "replies": _replies,
    }
    return [_run_check(name, check, context) for name, check in checks.items()]


def _run_check(
    name: str, check: Callable[[DashboardContext], CheckResult], context: DashboardContext
) -> Checked:
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
    text = f"{free / GIGA:.1f} GB free"
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
