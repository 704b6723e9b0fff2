"""Files that come and go."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from hermes_dashboard.models.text import Named, Words

# How a body is documented that is a file as it is.
ANY_BYTES: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ExportOrder(BaseModel):
    """Conversations to export; all without `ids`."""

    ids: Annotated[list[Named], Field(max_length=1000)] | None = None
    format: Literal["jsonl"] = "jsonl"


class ImportReportView(BaseModel):
    """Result for each session of a file."""

    imported: int
    messages: int
    unchanged: int
    skipped: list[Words]
    renamed: dict[str, Words]
    retitled: dict[str, Words]
    is_redacted: bool
    is_dry_run: bool


class Imported(BaseModel):
    """Result of an import."""

    report: ImportReportView
