"""File uploads from the page, and speech as text by the transcriber of voice messages."""

from __future__ import annotations

import mimetypes
import os
import re
import secrets
import time
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException, Query, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from hermes_conversation import attachments
from hermes_conversation.transcription import transcriber_of
from hermes_core import media_store
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_core.paths import FILE_MODE, private_folder
from hermes_dashboard.resources.files import ANY_BYTES
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.models.text import Responses


FOLDER: Final = "uploads"
MAX_MB: Final = 25
MAX_BYTES: Final = MAX_MB * 1024 * 1024
MAX_NAME_CHARACTERS: Final = 100
TOO_LARGE: Final = f"A file has at most {MAX_MB} MB."
RESPONSES: Final[Responses] = {
    400: {"description": "the connection was lost in the middle, or an image cannot be used"},
    413: {"description": "the file is too large"},
}


class Upload(BaseModel):
    """A stored file."""

    path: str
    name: str
    size: int
    media_type: str
    is_image: bool


def router(context: DashboardContext) -> ResourceRouter:
    """The routes of uploads and of speech."""
    routes = ResourceRouter("/api", tag="chat")

    @routes.post("/uploads", responses=RESPONSES, openapi_extra=ANY_BYTES)
    async def upload(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=500)]
    ) -> Upload:
        """Store a file; the returned path is passed to the agent."""
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > MAX_BYTES:
            raise HTTPException(413, TOO_LARGE)
        path = await run_in_threadpool(new_upload_path, context.home, name)
        kind = mimetypes.guess_type(path.name)[0] or media_store.UNKNOWN_MIME
        is_image = kind in attachments.IMAGE_TYPES
        try:
            size = await write_body(request, path)
            if is_image:
                await run_in_threadpool(check_image, path, safe_name(name))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Upload(
            path=str(path),
            name=safe_name(name),
            size=size,
            media_type=kind,
            is_image=is_image,
        )

    _add_transcriptions(routes, context)
    return routes


def check_image(path: Path, name: str) -> None:
    """Refuse an image that no message can have."""
    try:
        attachments.read(path)
    except UsageError as error:
        raise HTTPException(400, str(error).replace(str(path), name)) from error


async def write_body(request: Request, path: Path) -> int:
    """Write the body as it comes; how long it is."""
    size = 0
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(handle, "wb") as file:
        try:
            async for piece in request.stream():
                size += len(piece)
                if size > MAX_BYTES:
                    raise HTTPException(413, TOO_LARGE)
                await run_in_threadpool(file.write, piece)
        except ClientDisconnect as error:
            raise HTTPException(400, "The upload broke off.") from error
    return size


def new_upload_path(home: Path, name: str) -> Path:
    """A free path for a file with this name."""
    day = time.strftime("%Y-%m-%d")
    folder = private_folder(home / FOLDER / day)
    return folder / f"{secrets.token_hex(4)}-{safe_name(name)}"


def safe_name(written: str) -> str:
    """A file's name without anything that could lead elsewhere or upset a shell."""
    base = re.split(r"[/\\]", written)[-1]
    plain = re.sub(r"[^\w.()+@=, -]", "_", base).strip(". ")
    stem, suffix = os.path.splitext(plain)  # noqa: PTH122 - of a name, not of a path
    return (stem[: MAX_NAME_CHARACTERS - len(suffix[:20])] + suffix[:20]) or "file"


NOT_CONFIGURED: Final = (
    "No transcriber is configured. Set gateway.transcribe_command or gateway.transcribe_url."
)
POST_RESPONSES: Final[Responses] = {
    **RESPONSES,
    409: {"description": "no transcriber is configured"},
    502: {"description": "the transcriber failed"},
}


class TranscriptionState(BaseModel):
    """Whether speech can be transcribed."""

    is_available: bool


class TranscriptionText(BaseModel):
    """What was said."""

    text: str


def _add_transcriptions(routes: ResourceRouter, context: DashboardContext) -> None:
    @routes.get("/transcriptions")
    def show_state() -> TranscriptionState:
        """Whether a transcriber is configured; it is the one of voice messages."""
        found = transcriber_of(ConfigFile.of_home().settings())
        return TranscriptionState(is_available=found is not None)

    @routes.post("/transcriptions", responses=POST_RESPONSES, openapi_extra=ANY_BYTES)
    async def transcribe(
        request: Request, name: Annotated[str, Query(min_length=1, max_length=500)]
    ) -> TranscriptionText:
        """The text of a recording; the recording is not kept."""
        path = await run_in_threadpool(new_upload_path, context.home, name)
        try:
            await write_body(request, path)
            text = await run_in_threadpool(_transcribe, path)
        finally:
            path.unlink(missing_ok=True)
        return TranscriptionText(text=text)


def _transcribe(path: Path) -> str:
    transcriber = transcriber_of(ConfigFile.of_home().settings())
    if transcriber is None:
        raise HTTPException(409, NOT_CONFIGURED)
    try:
        return transcriber(path)
    except UsageError as error:
        raise HTTPException(502, f"Transcription failed: {error}") from error
