"""The log file: its entries, and its rotation by size."""

from __future__ import annotations

import logging

from hermes_core import log_file, paths
from hermes_core.log_file import LogFile, log_fields


def entry(text: str) -> logging.LogRecord:
    record = logging.LogRecord("test", logging.INFO, "", 0, text, None, None)
    vars(record).update(log_fields(inbox_id=7, missing=None))
    return record


def test_a_full_file_is_rotated_and_each_entry_is_formatted_once(monkeypatch):
    monkeypatch.setattr(log_file, "MAX_LOG_BYTES", 500)
    formatted = []
    original = log_file.JsonLinesFormatter.format

    def count(self, record):
        formatted.append(record)
        return original(self, record)

    monkeypatch.setattr(log_file.JsonLinesFormatter, "format", count)
    handler = LogFile(log_file.GATEWAY_LOG_NAME)
    for number in range(10):
        handler.emit(entry(f"message {number}"))
    handler.close()
    assert len(formatted) == 10
    folder = paths.logs_path()
    files = [folder / log_file.GATEWAY_LOG_NAME, folder / f"{log_file.GATEWAY_LOG_NAME}.1"]
    newest, older = (
        list(map(log_file.parse_line, path.read_text().splitlines())) for path in files
    )
    texts = [item.message for item in [*older, *newest]]
    assert texts == [f"message {number}" for number in range(10)][-len(texts) :]
    assert len(texts) >= 5
    assert newest[0].facts == {"inbox_id": 7}
    assert files[1].stat().st_size < 1000
