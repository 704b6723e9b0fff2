"""Speech of the page as text: by the transcriber that is configured for voice messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import HTTPException, Query, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from hermes_conversation.transcription import transcriber_of
from hermes_core.config.file import ConfigFile
from hermes_core.errors import UsageError
from hermes_dashboard.resources.files import ANY_BYTES
from hermes_dashboard.resources.uploads import RESPONSES, new_upload_path, write_body
from hermes_dashboard.routes import ResourceRouter

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_dashboard.context import DashboardContext
    from hermes_dashboard.models.text import Responses

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


def router(context: DashboardContext) -> ResourceRouter:
    """The routes."""
    routes = ResourceRouter("/api/transcriptions", tag="chat")

    @routes.get("")
    def show_state() -> TranscriptionState:
        """Whether a transcriber is configured; it is the one of voice messages."""
        found = transcriber_of(ConfigFile.of_home().settings())
        return TranscriptionState(is_available=found is not None)

    @routes.post("", responses=POST_RESPONSES, openapi_extra=ANY_BYTES)
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

    return routes


def _transcribe(path: Path) -> str:
    transcriber = transcriber_of(ConfigFile.of_home().settings())
    if transcriber is None:
        raise HTTPException(409, NOT_CONFIGURED)
    try:
        return transcriber(path)
    except UsageError as error:
        raise HTTPException(502, f"Transcription failed: {error}") from error
