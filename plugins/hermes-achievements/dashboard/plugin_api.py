"""The API of the achievements plugin: HTTP routes and functions for other programs.

The module has no logic and one service as its only state. Its functions call each other
through the module namespace, so that tests and other programs can replace them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

import orjson
from fastapi import APIRouter, Body, Depends, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from hermes_achievements import export
from hermes_achievements.catalogue import icons, load_outline
from hermes_achievements.evaluation import views
from hermes_achievements.evaluation.views import (
    SessionTitles,
    earned_in,
    steps_in,
    steps_with_titles,
    with_titles,
)
from hermes_achievements.pictures import svg
from hermes_achievements.pictures.recap_card import recap_card, slide_card
from hermes_achievements.recap import period_report
from hermes_achievements.recap.slides import find_slide
from hermes_achievements.scan.plain_history import MemoryLedger, PlainHistory, scan_plain
from hermes_achievements.scan.shared_runs import SharedRuns
from hermes_achievements.service import INCOMPLETE_MODES, SNAPSHOT_TTL_SECONDS, HistorySource
from hermes_conversation import achievements
from hermes_core.errors import HermesError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hermes_achievements.recap.periods import Period
    from hermes_achievements.scan.history import History

    Handler = Callable[[Request], Coroutine[Any, Any, Response]]

__all__ = ["SNAPSHOT_TTL_SECONDS", "compute_all", "evaluate_all", "router", "scan_sessions"]

NO_LIMIT: Final = -1
PROGRESS_INTERVAL_SESSIONS: Final = 250
CONFIRMATION_SECONDS: Final = 60.0
MAX_RECENT_UNLOCKS: Final = 500
ACCEPTED_VALUES: Final = {
    "limit": f"a whole number of 1 or more, for recent unlocks up to {MAX_RECENT_UNLOCKS}",
    "full": "true or false",
    "confirm": "the token of the first response",
}


async def _require_enabled() -> None:
    """Refuse requests while achievements are off; without a thread, because it takes no time."""
    if not achievements.is_enabled():
        raise HTTPException(403, "Achievements are disabled (setting achievements.enabled).")


class _ValidatedRoute(APIRoute):
    """Answers an invalid parameter with status 400 and the accepted values."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handle_with_message(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise HTTPException(400, _validation_message(error)) from error

        return handle_with_message


def _validation_message(error: RequestValidationError) -> str:
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return f"{name} is {first.get('input')!r}; accepted: {ACCEPTED_VALUES.get(name, first['msg'])}"


router = APIRouter(dependencies=[Depends(_require_enabled)], route_class=_ValidatedRoute)
_SERVICE: Final = achievements.service()
_TITLES: Final = SessionTitles(lambda: _open_history())  # noqa: PLW0108 - resolved at call time
_RESCANS: Final[SharedRuns[bool, tuple[int, bytes]]] = SharedRuns("hermes-achievements-rescan")
_REPORT_RUNS: Final[SharedRuns[tuple[str, str], bytes]] = SharedRuns("hermes-achievements-recap")
_REPORTS: Final = period_report.PeriodReports()
_CONFIRMATIONS: Final[dict[str, float]] = {}


def __getattr__(name: str) -> Any:
    """Public names for attributes of the service."""
    if name == "_SNAPSHOT_CACHE":
        return _SERVICE.cache
    if name == "_BACKGROUND_SCAN_THREAD":
        return _SERVICE.thread
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Scanning


def scan_sessions(
    limit: int | None = None,
    progress_callback: Any = None,
    progress_every: int = PROGRESS_INTERVAL_SESSIONS,
) -> dict[str, Any]:
    """Scan all sessions, or the newest *limit*, without writing anything.

    *progress_callback* is called with the result so far, the number of scanned sessions and
    the total number.
    """
    from hermes_state import SessionDB  # noqa: PLC0415 - the current store class

    store = SessionDB()
    try:
        session_limit = limit if limit is not None and limit > 0 else NO_LIMIT
        return scan_plain(PlainHistory(store, session_limit), progress_callback, progress_every)
    finally:
        store.close()


def _compute_from_scan(scan: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
    return _SERVICE.compute(scan, is_partial=is_partial)


def compute_all() -> dict[str, Any]:
    """Scan all sessions and evaluate them, without recording unlocks."""
    return _compute_from_scan(scan_sessions())


def _run_scan_and_update_cache(
    *, publish_partial_snapshots: bool = True, full: bool = False
) -> None:
    _SERVICE.run(
        _source(),
        lambda scan, *, is_partial=False: _compute_from_scan(scan, is_partial=is_partial),
        publish=publish_partial_snapshots,
        full=full,
    )


def _start_background_scan() -> None:
    _SERVICE.start(lambda: _run_scan_and_update_cache(publish_partial_snapshots=True))


def evaluate_all(force: bool = False) -> dict[str, Any]:
    """The current snapshot; with *force*, after a scan."""
    return _SERVICE.evaluate(
        force=force,
        run=lambda: _run_scan_and_update_cache(publish_partial_snapshots=False),
        start=lambda: _start_background_scan(),  # noqa: PLW0108 - resolved at call time
    )


def _source() -> HistorySource:
    from hermes_state import SessionDB  # noqa: PLC0415 - the current store class

    if hasattr(SessionDB, "index_progress"):  # our own store, not a stand-in for it
        return achievements.source()
    ledger = MemoryLedger()
    return HistorySource(lambda: PlainHistory(SessionDB()), lambda: ledger)


def _open_history() -> History:
    return _source().open_history()


# Files


def load_state() -> dict[str, Any]:
    """The stored unlocks."""
    return _SERVICE.records.state()


def save_state(state: dict[str, Any]) -> None:
    """Replace the stored unlocks."""
    _SERVICE.records.save_state(state)


def save_snapshot(snapshot: dict[str, Any]) -> None:
    """Replace the stored snapshot."""
    _SERVICE.records.save_snapshot(snapshot)


# HTTP: the server runs plain functions in a small thread pool, so they must not take long.


@router.get("/achievements")
def get_achievements(
    state: str = Query("all"),
    category: str = Query("all"),
    sort: str | None = Query(None),
    order: str = Query("asc"),
    limit: int | None = Query(None),
    source: str | None = Query(None),
) -> Response:
    """The current achievements; starts a background scan if the snapshot is stale."""
    snapshot = evaluate_all()
    with_meta = {**snapshot["scan_meta"], "status": _scan_status(snapshot)}
    try:
        result = views.filter_achievements(
            earned_in(snapshot, source, _open_history),
            load_outline(),
            state=state,
            category=category,
            sort=sort,
            order=order,
            limit=limit,
        )
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    hidden = ("aggregate", "scan_meta")
    body = {key: value for key, value in snapshot.items() if key not in hidden}
    body_with_titles = with_titles({**body, "achievements": result}, _TITLES)
    return _json({**body_with_titles, "filtered_count": len(result), "scan_meta": with_meta})


@router.get("/scan-status")
async def get_scan_status() -> Response:
    """The status of scans; without a thread, because nothing is read."""
    return _json(_scan_status(_SERVICE.current() or {}))


def _scan_status(snapshot: dict[str, Any]) -> dict[str, Any]:
    generated_at = snapshot.get("generated_at")
    return {
        **_SERVICE.status.facts().as_dict(),
        "ttl_seconds": SNAPSHOT_TTL_SECONDS,
        "snapshot_generated_at": generated_at,
        "snapshot_age_seconds": None if generated_at is None else time.time() - generated_at,
        "snapshot_stale": bool(snapshot) and _SERVICE.is_stale(snapshot),
    }


@router.get("/recent-unlocks")
def get_recent_unlocks(
    limit: int = Query(20, ge=1, le=MAX_RECENT_UNLOCKS), source: str | None = Query(None)
) -> Response:
    """The latest unlocks and tier-ups."""
    steps = steps_in(views.timeline(evaluate_all()), source, _open_history)
    return _json(steps_with_titles(steps[::-1][:limit], _TITLES))


@router.get("/timeline")
def get_timeline(source: str | None = Query(None)) -> Response:
    """Every unlock and tier-up, oldest first; those of the original program separately."""
    earned = steps_in(views.timeline(evaluate_all()), source, _open_history)
    steps = steps_with_titles(earned, _TITLES)
    return _json({"steps": steps, "inherited": load_state()["inherited"]})


@router.get("/sessions/{session_id}/badges")
def get_session_badges(session_id: str) -> Response:
    """The unlocks earned by messages of a session."""
    badges = steps_with_titles(views.session_badges(evaluate_all(), session_id), _TITLES)
    return _json({"session_id": session_id, "badges": badges})


@router.post("/rescan")
async def post_rescan(full: bool = Query(False)) -> Response:
    """Scan new messages, or all of them with *full*, and return the result.

    Concurrent requests share a run. Waiting does not use a thread of the server.
    """
    run = _RESCANS.join(full, lambda: _rescan(full=full))
    # A disconnected client must not cancel the run of the others.
    status, body = await asyncio.shield(asyncio.wrap_future(run))
    return Response(body, status, media_type="application/json")


def _rescan(*, full: bool) -> tuple[int, bytes]:
    _run_scan_and_update_cache(publish_partial_snapshots=False, full=full)
    status = _SERVICE.status.facts()
    snapshot = _SERVICE.current()
    if snapshot is None or status.last_error:
        reason = status.last_error or status.waiting_for or "the history is unreadable"
        return 503, orjson.dumps({"detail": reason})
    hidden = ("aggregate", "sessions", "moments")
    body = {key: value for key, value in snapshot.items() if key not in hidden}
    waiting_for = status.waiting_for  # set if the result is from an earlier scan
    answer = {"ok": True, **with_titles(body, _TITLES), "waiting_for": waiting_for}
    return 200, orjson.dumps({**answer, "is_stale": waiting_for is not None})


@router.post("/reset-state")
def post_reset_state(confirm: str | None = Body(None, embed=True)) -> Response:
    """Delete every unlock; the first call returns a token that the second has to send."""
    now = time.monotonic()
    for token in [token for token, until in _CONFIRMATIONS.items() if until < now]:
        del _CONFIRMATIONS[token]
    if confirm is None or _CONFIRMATIONS.pop(confirm, None) is None:
        token = secrets.token_urlsafe(12)
        _CONFIRMATIONS[token] = now + CONFIRMATION_SECONDS
        message = f'send {{"confirm": "{token}"}} within a minute to delete every unlock'
        return _json({"ok": False, "confirm": token, "detail": message}, status=409)
    _SERVICE.reset()
    return _json({"ok": True})


@router.get("/export")
def get_export(format: str = Query("json")) -> Response:  # noqa: A002 - the query parameter
    """Export the achievements as a file."""
    try:
        exported = export.render(evaluate_all(), _SERVICE.catalogue, format)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    disposition = f'attachment; filename="{exported.name}"'
    return Response(
        exported.content,
        media_type=exported.media_type,
        headers={"Content-Disposition": disposition},
    )


@router.get("/catalogue")
def get_catalogue() -> Response:
    """Tiers with colours, categories, and SVG shapes of icons."""
    catalogue = _SERVICE.catalogue
    return _json(
        {
            "tiers": [tier._asdict() for tier in catalogue.tiers],
            "categories": [category._asdict() for category in catalogue.categories],
            "icons": icons(),
        }
    )


@router.get("/recap")
async def get_recap(period: str = Query("")) -> Response:
    """The recap of a year (2026), a month (2026-11) or a week; default: the latest year."""
    body = await _run_report("json", period, _recap_json)
    return Response(body, media_type="application/json")


@router.get("/recap/picture")
async def get_recap_picture(period: str = Query(""), slide: str = Query("")) -> Response:
    """The recap, or one slide of it, as a PNG without session titles."""
    body = await _run_report(f"png {slide}", period, lambda found: _recap_picture(found, slide))
    if not body:
        raise HTTPException(404, "No such slide." if slide else "No activity in this period.")
    name = f"hermes-recap-{period or 'latest'}.png"
    disposition = f'attachment; filename="{name}"'
    return Response(body, media_type="image/png", headers={"Content-Disposition": disposition})


async def _run_report(form: str, text: str, make: Callable[[Period | None], bytes]) -> bytes:
    """Compute a recap without using a thread of the server: it can take seconds."""
    try:
        period = period_report.parse_period(text)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    run = _REPORT_RUNS.join((form, period.id if period else ""), lambda: make(period))
    try:
        return await asyncio.shield(asyncio.wrap_future(run))
    except HermesError as error:
        raise HTTPException(503, str(error)) from error


def _report(period: Period | None, snapshot: dict[str, Any]) -> period_report.PeriodReport | None:
    return _REPORTS.report(_source(), period, views.timeline(snapshot), snapshot["scan_id"])


def _recap_json(period: Period | None) -> bytes:
    snapshot = evaluate_all()
    result = _report(period, snapshot)
    if result is None:
        is_scanned = snapshot["scan_meta"]["mode"] not in INCOMPLETE_MODES
        return orjson.dumps({"period": None, "is_scanned": is_scanned})
    document = result.as_json()
    return orjson.dumps({**document, "tier_ups": steps_with_titles(document["tier_ups"], _TITLES)})


def _recap_picture(period: Period | None, slide_id: str) -> bytes:
    result = _report(period, evaluate_all())
    if result is None or result.recap.is_empty:
        return b""
    if slide_id:
        slide = find_slide(result.recap, result.period.name, slide_id)
        return svg.png(slide_card(slide, result.period.name)) if slide else b""
    return svg.png(recap_card(result.recap, result.period.name, _SERVICE.catalogue))


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")
