"""Exports, imports, and files attached to messages."""

from __future__ import annotations

import dataclasses
import json
import mimetypes
import re
import tempfile
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import HTTPException, Path, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, StreamingResponse

from hermes_core import media_store
from hermes_dashboard.models.text import Identifier, Responses, Text, problems
from hermes_dashboard.routes import ResourceRouter
from hermes_state.files import media_of
from hermes_state.portable import html, markdown, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes_dashboard.context import DashboardContext
    from hermes_state.store import SessionDB

# OpenAPI documentation of a raw file as request body.
ANY_BYTES: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


Format = Literal["jsonl", "json", "markdown", "html"]
MediaName = Annotated[str, Path(pattern=r"^[0-9a-f]{64}(\.[A-Za-z0-9]{1,10})?$")]

SUFFIXES: Final = {"jsonl": "jsonl", "json": "json", "markdown": "md", "html": "html"}
JSON_LINES_TYPE: Final = "application/x-ndjson"
MEDIA_TYPES: Final = {
    "jsonl": JSON_LINES_TYPE,
    "json": "application/json",
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
# Displayed inline; other types, SVG included, may contain scripts and are downloaded.
INLINE_TYPES: Final = (
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
    "image/bmp",
)


class ExportOrder(BaseModel):
    """Conversations to export; all without `ids`."""

    ids: Annotated[list[Identifier], Field(max_length=1000)] | None = None
    format: Literal["jsonl"] = "jsonl"


class ImportReportView(BaseModel):
    """Result for each session of a file."""

    imported: int
    messages: int
    unchanged: int
    skipped: list[Text]
    renamed: dict[str, Text]
    retitled: dict[str, Text]
    is_redacted: bool
    is_dry_run: bool


class Imported(BaseModel):
    """Result of an import."""

    report: ImportReportView


def file_response(*media_types: str) -> Responses:
    """The OpenAPI documentation of a file response."""
    names = (media_type.partition(";")[0] for media_type in media_types)
    content: dict[str, dict[str, str]] = {name: {} for name in names}
    return {200: {"description": "The file.", "content": content}}


MAX_MEMORY_BYTES: Final = 8 * 1024 * 1024


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of files."""
    routes = ResourceRouter("/api", tag="files")
    db = context.db

    @routes.get(
        "/sessions/{session_id}/export",
        response_class=StreamingResponse,
        responses=file_response(*MEDIA_TYPES.values()) | problems(400, 404, 409, 503),
    )
    def export_session(session_id: Identifier, format: Format = "markdown") -> StreamingResponse:  # noqa: A002
        """Export a conversation; `jsonl` can be imported again, other formats are to read."""
        resolved = db.lookup.resolve(session_id)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", resolved).lstrip(".")[:150] or "session"
        return _attachment(
            export_chunks(db, resolved, format), f"{name}.{SUFFIXES[format]}", format
        )

    @routes.post(
        "/export",
        response_class=StreamingResponse,
        responses=file_response(JSON_LINES_TYPE) | problems(400, 404, 409, 503),
    )
    def export_many(body: ExportOrder) -> StreamingResponse:
        """Export many conversations, or all, as a file that can be imported again."""
        ids = db.portable.sessions_to_export()
        if body.ids is not None:
            selected = {
                row
                for session_id in body.ids
                for row in db.lookup.conversation_rows(db.lookup.resolve(session_id))
            }
            ids = [session_id for session_id in ids if session_id in selected]
        return _attachment(db.portable.iter_export_file(ids), "hermes-export.jsonl", "jsonl")

    @routes.post("/import", responses=problems(400, 503), openapi_extra=ANY_BYTES)
    async def import_file(
        request: Request,
        dry_run: bool = False,
        on_conflict: Literal["skip", "rename", "fail"] = "skip",
    ) -> Imported:
        """Import an export file; a damaged one is rejected before anything changes."""
        with tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES) as file:
            async for piece in request.stream():
                await run_in_threadpool(file.write, piece)
            return await run_in_threadpool(_import, db, file, on_conflict, is_dry_run=dry_run)

    @routes.get(
        "/media/{name}",
        response_class=FileResponse,
        responses=file_response(*INLINE_TYPES, media_store.UNKNOWN_MIME) | problems(404),
    )
    def show_media(name: MediaName) -> FileResponse:
        """A file attached to a message; images are displayed, other files downloaded."""
        media = media_of(db)
        path = media.path_of(f"{media_store.REFERENCE_SCHEME}{name[:2]}/{name}")
        path = media.local_path(path)
        if not path.is_file():
            raise HTTPException(404, "The file no longer exists.")
        media_type = mimetypes.guess_type(name)[0] or media_store.UNKNOWN_MIME
        if media_type in INLINE_TYPES:
            return FileResponse(path, media_type=media_type, headers={"Cache-Control": "private"})
        return FileResponse(path, media_type=media_store.UNKNOWN_MIME, filename=name)

    return routes


def _attachment(chunks: Iterator[bytes], name: str, export_format: str) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(chunks, media_type=MEDIA_TYPES[export_format], headers=headers)


def _import(db: SessionDB, file: IO[bytes], on_conflict: Any, *, is_dry_run: bool) -> Imported:
    file.seek(0)
    report = db.portable.import_file(file, on_conflict=on_conflict, is_dry_run=is_dry_run)
    return Imported.model_validate({"report": dataclasses.asdict(report)})


def export_chunks(db: SessionDB, session_id: str, export_format: Format) -> Iterator[bytes]:
    """All rows of a conversation in one of the formats."""
    rows = db.lookup.conversation_rows(session_id)
    if export_format == "jsonl":
        return db.portable.iter_export_file(rows)
    if export_format == "json":
        return _as_json(db, rows)
    return _as_document(db, rows, export_format)


def _as_json(db: SessionDB, rows: list[str]) -> Iterator[bytes]:
    """A list of the rows with their messages; ASCII, so lone surrogates are escaped."""
    for number, row in enumerate(rows):
        yield b"[" if not number else b",\n"
        yield json.dumps(db.exports.by_column(row), default=str).encode("ascii")
    yield b"]\n"


def _as_document(db: SessionDB, rows: list[str], export_format: Format) -> Iterator[bytes]:
    options = readable.ReadOptions(db)
    conversations = [
        conversation for conversation in map(options.conversation, rows) if conversation is not None
    ]
    texts = (
        markdown.pages(iter(conversations))
        if export_format == "markdown"
        else html.pages(iter(conversations), [conversation.title for conversation in conversations])
    )
    for text in texts:
        yield readable.to_utf8(text)
