"""Exports, imports, and the pictures that came with messages."""

from __future__ import annotations

import dataclasses
import json
import mimetypes
import re
import tempfile
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, HTTPException, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, StreamingResponse

from hermes_core import media_store
from hermes_dashboard.models.files import ANY_BYTES, ExportOrder, Imported
from hermes_dashboard.models.text import Named, problems
from hermes_state.portable import html, markdown, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_dashboard.context import DashboardContext
    from hermes_state import SessionDB

Format = Literal["jsonl", "json", "markdown", "html"]
Kept = Annotated[str, Path(pattern=r"^[0-9a-f]{64}(\.[A-Za-z0-9]{1,10})?$")]

SUFFIXES: Final = {"jsonl": "jsonl", "json": "json", "markdown": "md", "html": "html"}
TYPES: Final = {
    "jsonl": "application/x-ndjson",
    "json": "application/json",
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
# Shown in the page; anything else, SVG too, may hold a program and is only given out.
HARMLESS: Final = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp")


def a_file(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """How an answer is documented that is a file."""
    content: dict[str, Any] = {kind.partition(";")[0]: {} for kind in kinds}
    return {200: {"description": "The file.", "content": content}}


IN_MEMORY: Final = 8 * 1024 * 1024


def router(parts: DashboardContext) -> APIRouter:
    """The addresses of files."""
    routes = APIRouter(prefix="/api", tags=["files"])
    db = parts.db

    @routes.get(
        "/sessions/{session_id}/export",
        response_class=StreamingResponse,
        responses=a_file(*TYPES.values()) | problems(400, 404, 409, 503),
    )
    def export_session(session_id: Named, format: Format = "markdown") -> StreamingResponse:  # noqa: A002
        """Export a conversation; `jsonl` can be imported again, other formats are to read."""
        found = db.resolve(session_id)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", found).lstrip(".")[:150] or "session"
        return _attachment(pieces(db, found, format), f"{name}.{SUFFIXES[format]}", format)

    @routes.post(
        "/export",
        response_class=StreamingResponse,
        responses=a_file(TYPES["jsonl"]) | problems(400, 404, 409, 503),
    )
    def export_many(asked: ExportOrder) -> StreamingResponse:
        """Export many conversations, or all, as a file that can be imported again."""
        ids = db.sessions_to_export()
        if asked.ids is not None:
            wanted = {row for one in asked.ids for row in db.conversation_rows(db.resolve(one))}
            ids = [one for one in ids if one in wanted]
        return _attachment(db.iter_export_file(ids), "hermes-export.jsonl", "jsonl")

    @routes.post(
        "/import", response_model=Imported, responses=problems(400, 503), openapi_extra=ANY_BYTES
    )
    async def import_file(
        request: Request,
        dry_run: bool = False,
        on_conflict: Literal["skip", "rename", "fail"] = "skip",
    ) -> dict[str, Any]:
        """Import an export file; a damaged one is rejected before anything changes."""
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            async for piece in request.stream():
                await run_in_threadpool(file.write, piece)
            return await run_in_threadpool(_take_in, db, file, on_conflict, is_dry_run=dry_run)

    @routes.get(
        "/media/{name}",
        response_class=FileResponse,
        responses=a_file(*HARMLESS, media_store.UNKNOWN_MIME) | problems(404),
    )
    def show_media(name: Kept) -> FileResponse:
        """A file attached to a message; images are displayed, other files downloaded."""
        path = media_store.of_home().path_of(f"{media_store.REFERENCE_SCHEME}{name[:2]}/{name}")
        if not path.is_file():
            raise HTTPException(404, "this file is no longer there")
        kind = mimetypes.guess_type(name)[0] or media_store.UNKNOWN_MIME
        if kind in HARMLESS:
            return FileResponse(path, media_type=kind, headers={"Cache-Control": "private"})
        return FileResponse(path, media_type=media_store.UNKNOWN_MIME, filename=name)

    return routes


def _attachment(found: Iterator[bytes], name: str, form: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(found, media_type=TYPES[form], headers=headers)


def _take_in(
    db: SessionDB, file: IO[bytes], on_conflict: Any, *, is_dry_run: bool
) -> dict[str, Any]:
    file.seek(0)
    report = db.import_file(file, on_conflict=on_conflict, is_dry_run=is_dry_run)
    return {"report": dataclasses.asdict(report)}


def pieces(db: SessionDB, session_id: str, form: Format) -> Iterator[bytes]:
    """A conversation, all rows of it, in one of the formats."""
    rows = db.conversation_rows(session_id)
    if form == "jsonl":
        return db.iter_export_file(rows)
    if form == "json":
        return _as_json(db, rows)
    return _as_pages(db, rows, form)


def _as_json(db: SessionDB, rows: list[str]) -> Iterator[bytes]:
    """A list of the rows, each with its messages; ASCII, which carries whatever was said."""
    for number, one in enumerate(rows):
        yield b"[" if not number else b",\n"
        yield json.dumps(db.export_session(one), default=str).encode("ascii")
    yield b"]\n"


def _as_pages(db: SessionDB, rows: list[str], form: Format) -> Iterator[bytes]:
    reading = readable.ReadOptions(db)
    found = [one for one in map(reading.conversation, rows) if one is not None]
    texts = (
        markdown.pages(iter(found))
        if form == "markdown"
        else html.pages(iter(found), [one.title for one in found])
    )
    for text in texts:
        yield readable.to_utf8(text)
