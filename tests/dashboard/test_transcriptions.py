"""Speech of the page as text, by the transcriber of voice messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_core.config.file import ConfigFile
from support.speech import speech_server

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2 as httpx

PATH = "/api/transcriptions"


def post(client: httpx.Client) -> httpx.Response:
    return client.post(PATH, params={"name": "voice.webm"}, content=b"sound")


def test_without_a_transcriber_nothing_is_offered(client: httpx.Client) -> None:
    assert client.get(PATH).json() == {"is_available": False}
    refused = post(client)
    assert refused.status_code == 409
    assert "gateway.transcribe_command" in refused.json()["detail"]


def test_a_server_transcribes_and_the_recording_is_not_kept(
    client: httpx.Client, hermes_home: Path
) -> None:
    with speech_server("Buy milk.") as (url, requests):
        ConfigFile.of_home().set("gateway.transcribe_url", url)
        assert client.get(PATH).json() == {"is_available": True}
        assert post(client).json() == {"text": "Buy milk."}
    assert len(requests) == 1
    assert [path for path in hermes_home.glob("uploads/**/*") if path.is_file()] == []


@pytest.mark.parametrize("command", ["false", "no-such-program"])
def test_a_transcriber_that_fails_is_reported(client: httpx.Client, command: str) -> None:
    ConfigFile.of_home().set("gateway.transcribe_command", command)
    failed = post(client)
    assert (failed.status_code, failed.json()["detail"][:20]) == (502, "Transcription failed")
