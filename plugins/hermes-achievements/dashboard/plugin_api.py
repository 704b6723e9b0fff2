"""The achievements plugin's seams: what the dashboard mounts and other programs call.

There is no logic here and no state but one service. Functions call each other through
their names in this module, so that whoever replaces one is heard.
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
from hermes_achievements.catalogue import icons
from hermes_achievements.evaluation import views
from hermes_achievements.evaluation.views import Names, named, steps_named
from hermes_achievements.pictures import svg
from hermes_achievements.pictures.recap_card import recap_card
from hermes_achievements.recap import period_report
from hermes_achievements.scan.plain_history import MemoryLedger, PlainHistory, scan_plain
from hermes_achievements.scan.shared_runs import SharedRuns
from hermes_achievements.service import INCOMPLETE, SNAPSHOT_TTL_SECONDS, Source
from hermes_conversation import achievements
from hermes_core.errors import HermesError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from hermes_achievements.recap.periods import Period

    Handler = Callable[[Request], Coroutine[Any, Any, Response]]

__all__ = ["SNAPSHOT_TTL_SECONDS", "compute_all", "evaluate_all", "router", "scan_sessions"]

UNLIMITED: Final = -1
PROGRESS_EVERY: Final = 250
CONFIRM_SECONDS: Final = 60.0
MOST_RECENT: Final = 500
ACCEPTED: Final = {
    "limit": f"a whole number of 1 or more, for recent unlocks up to {MOST_RECENT}",
    "full": "true or false",
    "confirm": "the token that the first call has given",
}


def _require_enabled() -> None:
    if not achievements.is_enabled():
        raise HTTPException(403, "achievements are switched off (setting achievements.enabled)")


class _PlainRoute(APIRoute):
    """Says what is accepted where a parameter is not, in the words of the other answers."""

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handle_plainly(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                raise HTTPException(400, _complaint(error)) from error

        return handle_plainly


def _complaint(error: RequestValidationError) -> str:
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return f"{name} is {first.get('input')!r}; accepted: {ACCEPTED.get(name, first['msg'])}"


router = APIRouter(dependencies=[Depends(_require_enabled)], route_class=_PlainRoute)
_SERVICE: Final = achievements.service()
_NAMES: Final = Names(lambda: _source().open_history())
_RESCANS: Final[SharedRuns[bool, tuple[int, bytes]]] = SharedRuns("hermes-achievements-rescan")
_LOOKS_BACK: Final[SharedRuns[tuple[str, str], bytes]] = SharedRuns("hermes-achievements-recap")
_KEPT_LOOKS: Final = period_report.LookBacks()
_CONFIRMATIONS: Final[dict[str, float]] = {}


def __getattr__(name: str) -> Any:
    """Views of the service, under the names that other programs know."""
    if name == "_SNAPSHOT_CACHE":
        return _SERVICE.cache
    if name == "_BACKGROUND_SCAN_THREAD":
        return _SERVICE.thread
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Scanning


def scan_sessions(
    limit: int | None = None, progress_callback: Any = None, progress_every: int = PROGRESS_EVERY
) -> dict[str, Any]:
    """Read all sessions, or the newest *limit*; without writing anything.

    *progress_callback* is called with what was found so far, how many sessions that is
    and how many there are.
    """
    from hermes_state import SessionDB  # noqa: PLC0415 - the store of the moment

    store = SessionDB()
    try:
        wanted = limit if limit is not None and limit > 0 else UNLIMITED
        return scan_plain(PlainHistory(store, wanted), progress_callback, progress_every)
    finally:
        store.close()


def _compute_from_scan(scan: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
    return _SERVICE.compute(scan, is_partial=is_partial)


def compute_all() -> dict[str, Any]:
    """Scan everything and evaluate it."""
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
    """What is known now; with *force*, after a scan that the caller waits for."""
    return _SERVICE.evaluate(
        force=force,
        run=lambda: _run_scan_and_update_cache(publish_partial_snapshots=False),
        start=lambda: _start_background_scan(),  # noqa: PLW0108 - by its name of the moment
    )


def _source() -> Source:
    from hermes_state import SessionDB  # noqa: PLC0415 - the store of the moment

    if hasattr(SessionDB, "ledger"):
        return achievements.source()
    ledger = MemoryLedger()
    return Source(lambda: PlainHistory(SessionDB()), lambda: ledger)


# Files


def load_state() -> dict[str, Any]:
    """The unlocks on disk."""
    return _SERVICE.records.state()


def save_state(state: dict[str, Any]) -> None:
    """Replace the unlocks on disk."""
    _SERVICE.records.save_state(state)


def save_snapshot(snapshot: dict[str, Any]) -> None:
    """Replace the snapshot on disk."""
    _SERVICE.records.save_snapshot(snapshot)


# HTTP: plain functions, which the server runs in threads of its own. There are not many of
# those, so nothing that takes long is done in them.


@router.get("/achievements")
def get_achievements(
    state: str = Query("all"),
    category: str = Query("all"),
    sort: str | None = Query(None),
    order: str = Query("asc"),
    limit: int | None = Query(None),
) -> Response:
    """Every achievement as far as it is known; a scan is started when that is too old."""
    snapshot = evaluate_all()
    with_meta = {**snapshot["scan_meta"], "status": _scan_status(snapshot)}
    try:
        found = views.listed(
            snapshot,
            _SERVICE.catalogue,
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
    chosen = named({**body, "achievements": found}, _NAMES)
    return _json({**chosen, "filtered_count": len(found), "scan_meta": with_meta})


@router.get("/scan-status")
def get_scan_status() -> Response:
    """How scanning is going."""
    return _json(_scan_status(_SERVICE.current() or {}))


def _scan_status(snapshot: dict[str, Any]) -> dict[str, Any]:
    made = snapshot.get("generated_at")
    return {
        **_SERVICE.status.facts(),
        "ttl_seconds": SNAPSHOT_TTL_SECONDS,
        "snapshot_generated_at": made,
        "snapshot_age_seconds": None if made is None else time.time() - made,
        "snapshot_stale": bool(snapshot) and _SERVICE.is_stale(snapshot),
    }


@router.get("/recent-unlocks")
def get_recent_unlocks(limit: int = Query(20, ge=1, le=MOST_RECENT)) -> Response:
    """The newest unlocks and tier-ups."""
    return _json(steps_named(views.recent(evaluate_all(), limit), _NAMES))


@router.get("/timeline")
def get_timeline() -> Response:
    """Every unlock and tier-up, the earliest first; what older programs recorded apart."""
    steps = steps_named(views.timeline(evaluate_all()), _NAMES)
    return _json({"steps": steps, "inherited": load_state()["inherited"]})


@router.get("/sessions/{session_id}/badges")
def get_session_badges(session_id: str) -> Response:
    """What was earned by messages of one session."""
    badges = steps_named(views.badges_of(evaluate_all(), session_id), _NAMES)
    return _json({"session_id": session_id, "badges": badges})


@router.post("/rescan")
async def post_rescan(full: bool = Query(False)) -> Response:
    """Look at everything new, and answer when that is done; with *full*, read all again.

    Whoever asks for the same at the same time gets the same answer. The wait takes no thread
    of the server.
    """
    run = _RESCANS.join(full, lambda: _rescanned(full=full))
    # Somebody who leaves must not take the run from the others.
    status, body = await asyncio.shield(asyncio.wrap_future(run))
    return Response(body, status, media_type="application/json")


def _rescanned(*, full: bool) -> tuple[int, bytes]:
    _run_scan_and_update_cache(publish_partial_snapshots=False, full=full)
    status = _SERVICE.status.facts()
    snapshot = _SERVICE.current()
    if snapshot is None or status["last_error"]:
        reason = status["last_error"] or status["waiting_for"] or "the history could not be read"
        return 503, orjson.dumps({"detail": reason})
    hidden = ("aggregate", "sessions", "moments")
    body = {key: value for key, value in snapshot.items() if key not in hidden}
    waiting_for = status["waiting_for"]  # then these are the numbers of an earlier scan
    known = {"ok": True, **named(body, _NAMES), "waiting_for": waiting_for}
    return 200, orjson.dumps({**known, "is_stale": waiting_for is not None})


@router.post("/reset-state")
def post_reset_state(confirm: str | None = Body(None, embed=True)) -> Response:
    """Forget every unlock: the first call gives a token, the second brings it back."""
    now = time.monotonic()
    for token in [one for one, until in _CONFIRMATIONS.items() if until < now]:
        del _CONFIRMATIONS[token]
    if confirm is None or _CONFIRMATIONS.pop(confirm, None) is None:
        token = secrets.token_urlsafe(12)
        _CONFIRMATIONS[token] = now + CONFIRM_SECONDS
        message = f'send {{"confirm": "{token}"}} within a minute to forget every unlock'
        return _json({"ok": False, "confirm": token, "detail": message}, status=409)
    _SERVICE.reset()
    return _json({"ok": True})


@router.get("/export")
def get_export(format: str = Query("json")) -> Response:  # noqa: A002 - its name in the address
    """What has been earned, as a file."""
    try:
        made = export.render(evaluate_all(), _SERVICE.catalogue, format)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    disposition = f'attachment; filename="{made.name}"'
    return Response(
        made.content, media_type=made.media_type, headers={"Content-Disposition": disposition}
    )


@router.get("/catalogue")
def get_catalogue() -> Response:
    """What every answer refers to: tiers with their colours, categories, drawings of icons."""
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
    """A look back on a year (2026), a month (2026-11) or a week; without one, the latest year."""
    body = await _looked_back("json", period, _recap_json)
    return Response(body, media_type="application/json")


@router.get("/recap/picture")
async def get_recap_picture(period: str = Query("")) -> Response:
    """The same as a PNG that names no conversation."""
    body = await _looked_back("png", period, _recap_picture)
    if not body:
        raise HTTPException(404, "there is nothing to look back on in this period")
    name = f"hermes-recap-{period or 'latest'}.png"
    disposition = f'attachment; filename="{name}"'
    return Response(body, media_type="image/png", headers={"Content-Disposition": disposition})


async def _looked_back(form: str, text: str, make: Callable[[Period | None], bytes]) -> bytes:
    """A long history takes seconds, so this takes no thread of the server either."""
    try:
        period = period_report.asked(text)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    run = _LOOKS_BACK.join((form, period.id if period else ""), lambda: make(period))
    try:
        return await asyncio.shield(asyncio.wrap_future(run))
    except HermesError as error:
        raise HTTPException(503, str(error)) from error


def _look_back(period: Period | None, snapshot: dict[str, Any]) -> period_report.LookBack | None:
    return _KEPT_LOOKS.of(_source(), period, views.timeline(snapshot), snapshot["scan_id"])


def _recap_json(period: Period | None) -> bytes:
    snapshot = evaluate_all()
    found = _look_back(period, snapshot)
    if found is None:
        is_scanned = snapshot["scan_meta"]["mode"] not in INCOMPLETE
        return orjson.dumps({"period": None, "is_scanned": is_scanned})
    plain = found.plain()
    return orjson.dumps({**plain, "tier_ups": steps_named(plain["tier_ups"], _NAMES)})


def _recap_picture(period: Period | None) -> bytes:
    found = _look_back(period, evaluate_all())
    if found is None or found.recap.is_empty:
        return b""
    return svg.png(recap_card(found.recap, found.period.name, _SERVICE.catalogue))


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")
