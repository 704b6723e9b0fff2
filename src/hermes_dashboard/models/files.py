"""Models of export and import."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Identifier, Text

# OpenAPI documentation of a raw file as request body.
ANY_BYTES: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


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
