"""Transcription of voice messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_conversation import transcription

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_command_that_writes_down_speech_sees_no_tokens(
    hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    assert "secret" not in transcription.CommandTranscriber("sh -c env")(tmp_path)
