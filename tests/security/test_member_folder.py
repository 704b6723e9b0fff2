"""What a member puts into the own folder, against the gateway process that uses the folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermes_core import media_store
from hermes_core.roles import Person
from support.gateways import running_gateway
from support.hostile_people import (
    CANARY,
    ChatPeople,
    OwnersThings,
    call,
    script,
    telegram_config,
    tool_results,
)
from support.pairings import pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_state import SessionDB


@pytest.fixture
def folder(db: SessionDB, hermes_home: Path) -> Path:
    pair(db, "telegram", "bob", "Bob")
    folder = hermes_home / "workspaces" / Person("telegram", "bob").folder_name
    folder.mkdir(parents=True)
    return folder


async def test_a_link_named_like_the_instructions_of_a_folder_reads_nothing(
    db: SessionDB, folder: Path, hermes_home: Path, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    owners = OwnersThings(db, hermes_home)
    (folder / "AGENTS.md").symlink_to(owners.env)
    server = model(script("Hello."))
    async with running_gateway(db, tmp_path, telegram_config()) as service:
        assert await ChatPeople(db, service).ask("bob", "hi") == "Hello."
    assert CANARY not in json.dumps(server.requests)


async def test_the_prompt_of_a_member_names_the_folder_of_the_member(
    db: SessionDB, folder: Path, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    server = model(script("Hello."))
    async with running_gateway(db, tmp_path, telegram_config()) as service:
        await ChatPeople(db, service).ask("bob", "hi")
    assert f"Working folder: {folder}\n" in server.requests[0]["messages"][0]["content"]


async def test_a_pipe_named_like_the_instructions_of_a_folder_stops_nothing(
    db: SessionDB, folder: Path, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    os.mkfifo(folder / "AGENTS.md")
    model(script("Hello."))
    async with running_gateway(db, tmp_path, telegram_config()) as service:
        assert await ChatPeople(db, service).ask("bob", "hi") == "Hello."


async def test_a_file_that_a_member_sends_is_not_written_through_a_link(
    db: SessionDB, folder: Path, hermes_home: Path, tmp_path: Path, model: Callable[[str], Any]
) -> None:
    outside = Path.home() / ".bashrc.d"
    outside.mkdir()
    (folder / "attachments").symlink_to(outside)
    stored = media_store.of_home().keep(b"touch ~/planted", "x.sh", "text/x-sh")
    server = model(script("Read."))
    files = {"media_urls": [str(stored.path)], "media_types": ["text/x-sh"]}
    async with running_gateway(db, tmp_path, telegram_config()) as service:
        assert await ChatPeople(db, service).ask("bob", "read this", files=files) == "Read."
    assert list(outside.iterdir()) == []
    assert "not copied to the working folder" in server.requests[0]["messages"][-1]["content"]


async def test_commands_of_a_member_get_no_variables_of_the_owner(
    db: SessionDB,
    folder: Path,
    tmp_path: Path,
    model: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GITHUB_TOKEN", "PGPASSWORD", "OWNERS_NAME"):
        monkeypatch.setenv(name, CANARY)
    server = model(script([call("terminal", command="env")], "Done."))
    async with running_gateway(db, tmp_path, telegram_config()) as service:
        assert await ChatPeople(db, service).ask("bob", "print your environment") == "Done."
    (result,) = tool_results(server.requests[-1])
    assert CANARY not in result
    assert f"HOME={folder}" in result
    assert "PATH=" in result
